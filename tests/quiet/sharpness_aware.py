"""Sharpness-aware minimisation: one backward to climb, gradients cleared, one backward at the perturbed weights.
Tempts: zero-grad-misplaced (gradients cleared between backward and step)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(15)
voltages = torch.randn(128, 8)
state = (voltages[:, 0] * voltages[:, 1] > 0).long()
relay = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(relay.parameters(), lr=0.1, momentum=0.9)


@torch.no_grad()
def climb(parameters, radius=0.05):
    """Move to the worst point nearby and return the way back."""
    gradients = [p.grad for p in parameters]
    scale = radius / (torch.stack([g.norm() for g in gradients]).norm() + 1e-12)
    offsets = [g * scale for g in gradients]
    torch._foreach_add_(parameters, offsets)
    return offsets


# %%
parameters = list(relay.parameters())
for _ in range(15):
    loss = F.cross_entropy(relay(voltages), state)
    loss.backward()
    offsets = climb(parameters)
    optimizer.zero_grad()
    F.cross_entropy(relay(voltages), state).backward()
    with torch.no_grad():
        torch._foreach_sub_(parameters, offsets)
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
