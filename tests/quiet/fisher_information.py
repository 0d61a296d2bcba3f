"""Elastic weight consolidation: squared gradients are summed sample by sample and cleared, without any step.
Tempts: zero-grad-misplaced (gradients are cleared and no step has used them), missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(74)
task_a, label_a = torch.randn(80, 6), torch.randint(0, 3, (80,))
task_b, label_b = torch.randn(80, 6) + 1, torch.randint(0, 3, (80,))
model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 3))


def train(x, y, penalty=lambda: 0.0, steps=15):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y) + penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


# %%
train(task_a, label_a)
anchor = {name: p.detach().clone() for name, p in model.named_parameters()}
fisher = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
model.eval()
for x, y in zip(task_a[:40], label_a[:40], strict=True):
    model.zero_grad()
    nn.functional.cross_entropy(model(x.unsqueeze(0)), y.unsqueeze(0)).backward()
    for name, p in model.named_parameters():
        fisher[name] += p.grad.square() / 40
model.zero_grad()
model.train()


# %%
def stay_close():
    return 50 * sum((fisher[name] * (p - anchor[name]).square()).sum() for name, p in model.named_parameters())


print(train(task_b, label_b, stay_close))
