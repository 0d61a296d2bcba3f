"""A mixture density network: log_softmax of the mixing logits plus normal log-densities, joined by logsumexp.
Tempts: softmax-before-cross-entropy, loss-broadcast (target (N, 1) against means (N, K), as meant)."""

# %%
import torch
from torch import nn
from torch.distributions import Normal


class MixtureHead(nn.Module):
    def __init__(self, width, parts):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh())
        self.logits, self.mean, self.log_scale = (nn.Linear(width, parts) for _ in range(3))

    def forward(self, x):
        hidden = self.body(x)
        return self.logits(hidden).log_softmax(dim=1), Normal(self.mean(hidden), self.log_scale(hidden).exp())


torch.manual_seed(41)
angle = torch.rand(128, 1) * 2 - 1
branch = torch.where(torch.rand(128, 1) < 0.5, angle.square(), -angle) + 0.05 * torch.randn(128, 1)
network = MixtureHead(24, parts=5)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

# %%
for _ in range(25):
    log_weight, parts = network(angle)
    loss = -torch.logsumexp(log_weight + parts.log_prob(branch), dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
