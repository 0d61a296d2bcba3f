"""Five models as one batch of weights: stacked states, vmap over them, the mean of their losses.
Tempts: leaf-rebound, parameters-missing-from-optimizer (the optimizer has the stacked ones), eval-missing."""

# %%
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(68)
models = [nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(5)]
stacked, buffers = stack_module_state(models)
skeleton = copy.deepcopy(models[0]).to("meta")
opt = torch.optim.Adam(stacked.values(), lr=1e-2)
x, y = torch.randn(40, 3), torch.randn(40, 1)


def predict(weights, state, rows):
    return functional_call(skeleton, (weights, state), (rows,))


# %%
for step in range(6):
    every = vmap(predict, in_dims=(0, 0, None))(stacked, buffers, x)
    loss = (every - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    spread = vmap(predict, in_dims=(0, 0, None))(stacked, buffers, x).std(0)
print(spread.mean().item())
