"""A differential equation as loss: derivatives of the network with create_graph, at points that require grad.
Tempts: retain-graph-growth, nothing-to-train, leaves that no optimizer holds."""

# %%
import torch
from torch import nn

torch.manual_seed(49)
u = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(u.parameters(), lr=5e-3)
t = torch.linspace(0, 1, 40).view(-1, 1).requires_grad_(True)


def residual(points):
    value = u(points)
    first = torch.autograd.grad(value, points, torch.ones_like(value), create_graph=True)[0]
    second = torch.autograd.grad(first, points, torch.ones_like(first), create_graph=True)[0]
    return second + 4 * value, value, first


# %%
losses = []
for it in range(10):
    optimizer.zero_grad()
    equation, value, slope = residual(t)
    loss = equation.pow(2).mean() + (value[0] - 1).pow(2).sum() + slope[0].pow(2).sum()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
t.grad = None
print(losses[-1] < losses[0])
