"""Quantile regression: predictions (N, 3) against a target (N, 1), weighted by levels (3,); wanted broadcasts.
Tempts: loss-broadcast (operands of different shapes inside the loss)."""

# %%
import torch
from torch import nn

torch.manual_seed(39)
hours = torch.rand(150, 2) * 4
queue = hours.sum(1, keepdim=True) * (1 + 0.3 * torch.randn(150, 1))
levels = torch.tensor([0.1, 0.5, 0.9])
clerk = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(clerk.parameters(), lr=1e-2)


def pinball(predicted, target):
    error = target - predicted
    return torch.maximum(levels * error, (levels - 1) * error).mean()


# %%
for _ in range(25):
    optimizer.zero_grad()
    loss = pinball(clerk(hours), queue)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print((queue < clerk(hours)).float().mean(0))
