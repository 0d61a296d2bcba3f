"""A physics-informed network: derivatives by autograd.grad with create_graph inside the loss, summed with the edges.
Tempts: graph-retained-in-list, loss-broadcast (column vectors everywhere, (N, 1) against (N, 1))."""

# %%
import torch
from torch import nn

torch.manual_seed(76)
rod = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(rod.parameters(), lr=5e-3)


def derivative(of, by):
    return torch.autograd.grad(of.sum(), by, create_graph=True)[0]


def residual(count):
    x, t = (torch.rand(count, 1, requires_grad=True) for _ in range(2))
    u = rod(torch.cat([x, t], dim=1))
    return derivative(u, t) - 0.1 * derivative(derivative(u, x), x)


# %%
start = torch.linspace(0, 1, 32).unsqueeze(1)
start_heat = (torch.pi * start).sin()
for _ in range(15):
    optimizer.zero_grad()
    terms = {
        "equation": residual(64).square().mean(),
        "start": nn.functional.mse_loss(rod(torch.cat([start, torch.zeros(32, 1)], dim=1)), start_heat),
    }
    total = sum(terms.values())
    total.backward()
    optimizer.step()
print({name: round(term.item(), 4) for name, term in terms.items()})
