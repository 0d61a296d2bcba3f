"""Truncated backpropagation: each step goes back through the window, which is cut after every fifth step.
Tempts: retain-graph-growth (the graph is kept and grows within a window)."""

# %%
import torch
from torch import nn

torch.manual_seed(61)
tide, height = nn.GRUCell(4, 96), nn.Linear(96, 1)
optimizer = torch.optim.SGD([*tide.parameters(), *height.parameters()], lr=0.0)

# %%
hours = torch.randn(60, 64, 4)
state = torch.zeros(64, 96)
for hour, moon in enumerate(hours):
    if hour % 5 == 0:
        state = state.detach()
        optimizer.step()
        optimizer.zero_grad()
    state = tide(moon, state)
    error = (height(state) - moon.mean(1, keepdim=True)).pow(2).mean()
    error.backward(retain_graph=True)
state = state.detach()
del error
