"""MAML with torch.func.functional_call: inner updates are kept in the graph, the outer loss goes through them.
Tempts: graph-retained-in-list (task losses in a list), optimizer-of-another-model."""

# %%
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(67)
learner = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
outer = torch.optim.Adam(learner.parameters(), lr=5e-3)


def task():
    slope, offset = torch.randn(2)
    x = torch.rand(20, 1) * 4 - 2
    return x, slope * x + offset


def adapted(weights, x, y, rate=0.05, steps=2):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(learner, weights, (x,)), y)
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: w - rate * g for (name, w), g in zip(weights.items(), slopes, strict=True)}
    return weights


# %%
for _ in range(6):
    outer_losses = []
    for x, y in (task() for _ in range(4)):
        fast = adapted(dict(learner.named_parameters()), x[:10], y[:10])
        outer_losses.append(nn.functional.mse_loss(functional_call(learner, fast, (x[10:],)), y[10:]))
    loss = torch.stack(outer_losses).mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
print(loss.item())
