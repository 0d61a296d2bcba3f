"""Curvature of a trained model: products with the Hessian and an eigenvalue by power iteration, no step follows.
Tempts: retain-graph-growth, eval-without-no-grad, missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(67)
net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(50, 4), torch.randint(0, 2, (50,))
for _ in range(10):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()

# %%
weights = list(net.parameters())
loss = nn.functional.cross_entropy(net(x), y)
first = torch.autograd.grad(loss, weights, create_graph=True)
flat = torch.cat([g.reshape(-1) for g in first])
vector = torch.randn_like(flat)
for _ in range(6):
    vector = vector / vector.norm()
    product = torch.autograd.grad(flat @ vector, weights, retain_graph=True)
    vector = torch.cat([g.reshape(-1) for g in product]).detach()
sharpness = vector.norm().item()
del loss, first, flat, product
