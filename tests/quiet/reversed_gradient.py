"""Domain adaptation with a gradient reversal layer, a custom autograd.Function; two losses are summed.
Tempts: zero-grad-misplaced, graph-retained-in-list (a hand-written backward, domains cycling without order)."""

# %%
import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


torch.manual_seed(49)
studio, street = torch.randn(100, 12), torch.randn(100, 12) * 1.5 + 0.3
spoken = studio[:, :3].argmax(1)
features = nn.Sequential(nn.Linear(12, 24), nn.ReLU())
word_head, domain_head = nn.Linear(24, 3), nn.Linear(24, 1)
optimizer = torch.optim.SGD(
    [*features.parameters(), *word_head.parameters(), *domain_head.parameters()], lr=0.05, momentum=0.9
)
domain = torch.cat([torch.zeros(50, 1), torch.ones(50, 1)])

# %%
for step in range(12):
    half = slice(0, 50) if step % 2 else slice(50, 100)
    hidden = features(torch.cat([studio[half], street[half]]))
    word_loss = nn.functional.cross_entropy(word_head(hidden[:50]), spoken[half])
    guess = domain_head(Reverse.apply(hidden, 0.3))
    loss = word_loss + nn.functional.binary_cross_entropy_with_logits(guess, domain)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(word_loss.item())
