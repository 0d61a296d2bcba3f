"""One cell makes the model, another what refers to it; both run again. The old weights stay where they are wanted.
Tempts: old-model-still-alive (a function bound to the model, a list of runs, an average of the weights)."""

# %%
import copy
from functools import partial

import torch
from torch import nn

torch.manual_seed(71)
field, crop = torch.randn(64, 400), torch.randn(64, 1)
runs = []


def spread(net, inputs):
    with torch.no_grad():
        return net(inputs).std().item()


# %%
net = nn.Sequential(nn.Linear(400, 800), nn.ReLU(), nn.Linear(800, 1))
average = copy.deepcopy(net)
watch = partial(spread, net)

# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(field), crop).backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
runs.append((net, watch(field)))

# %%
net = nn.Sequential(nn.Linear(400, 800), nn.ReLU(), nn.Linear(800, 1))
average = copy.deepcopy(net)
watch = partial(spread, net)

# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(field), crop).backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
runs.append((net, watch(field)))
print([value for _, value in runs])
