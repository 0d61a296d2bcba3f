"""MAML in full: inner steps by functional_call on values with a graph, outer step on the module's own parameters.
Tempts: leaf-rebound, inplace-on-leaf, retain-graph-growth, graph-retained-in-list."""

# %%
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(51)
net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1))
meta_opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def task():
    phase, height = torch.rand(1) * 3, torch.rand(1) * 2 + 0.5
    x = torch.rand(20, 1) * 6 - 3
    return x, height * torch.sin(x + phase)


def adapt(weights, x, y, steps=2, lr=0.02):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(net, weights, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
        weights = {k: w - lr * g for (k, w), g in zip(weights.items(), grads, strict=True)}
    return weights


# %%
curve = []
for outer in range(5):
    meta_loss = 0.0
    for _ in range(4):
        x, y = task()
        fast = adapt(dict(net.named_parameters()), x[:10], y[:10])
        meta_loss = meta_loss + nn.functional.mse_loss(functional_call(net, fast, (x[10:],)), y[10:]) / 4
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
    curve.append(float(meta_loss))
del fast, meta_loss
