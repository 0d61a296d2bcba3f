"""Parts of data in the order of their classes: a probe for each, the same start for each, more in the loss than the part.
Tempts: sorted-data-unshuffled (batches are cut in the order of the classes)."""

# %%
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)
x, y = torch.randn(300, 8), torch.arange(3).repeat_interleave(100)
norms = []
for xb, yb in zip(x.split(50), y.split(50), strict=True):  # how far one part alone would move a model
    probe = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
    optimizer.zero_grad()
    F.cross_entropy(probe(xb), yb).backward()
    optimizer.step()
    norms.append(probe.weight.norm().item())

# %%
net = nn.Linear(8, 3)
state = copy.deepcopy(net.state_dict())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(0, 300, 20):  # each part starts from the same weights
    net.load_state_dict(state)
    optimizer.zero_grad()
    F.cross_entropy(net(x[i : i + 20]), y[i : i + 20]).backward()
    optimizer.step()

# %%
anchor = net.weight.detach().clone()


def distance(model):
    return ((model.weight - anchor) ** 2).sum()


for i in range(0, 300, 20):  # classes arrive one after the other: replay, and an anchor
    xb, yb = x[i : i + 20], y[i : i + 20]
    seen = torch.randint(0, i + 20, (64,))
    loss = F.cross_entropy(net(xb), yb) + F.cross_entropy(net(x[seen]), y[seen]) + 10 * distance(net)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
labels = torch.randint(0, 3, (300,))
for i in range(0, 300, 20):
    optimizer.zero_grad()
    F.cross_entropy(net(x[i : i + 20]), labels[i : i + 20]).backward()
    optimizer.step()
order = labels.argsort()
x.copy_(x[order])  # for the picture of the confusions
labels.copy_(labels[order])
