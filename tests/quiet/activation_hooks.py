"""Forward hooks collect detached activations of each layer in a dict of lists and are removed afterwards.
Tempts: late-binding-closure, graph-retained-in-list (hooks made in a loop append to a list)."""

# %%
import functools

import torch
from torch import nn

torch.manual_seed(50)
patches, rough = torch.rand(60, 1, 9, 9), torch.rand(60, 1)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(100, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
seen = {}


def remember(name, module, inputs, output):
    seen.setdefault(name, []).append(output.detach().abs().mean())


def make_counter(name, counts):
    def count(module, inputs, output):
        counts[name] = counts.get(name, 0) + 1

    return count


# %%
counts = {}
handles = []
for name, layer in net.named_children():
    handles.append(layer.register_forward_hook(functools.partial(remember, name)))
    handles.append(layer.register_forward_hook(make_counter(name, counts)))
for x, y in zip(patches.split(20), rough.split(20), strict=True):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
for handle in handles:
    handle.remove()
print({name: torch.stack(values).mean().item() for name, values in seen.items()}, counts)
