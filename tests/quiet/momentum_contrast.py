"""Momentum contrast: the key encoder runs in train mode under no_grad; cross entropy on similarities to a queue.
Tempts: eval-missing, optimizer-of-another-model (the key encoder), graph-retained-in-list (a queue of keys)."""

# %%
import copy
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(77)
frames = torch.randn(128, 18)
query_net = nn.Sequential(nn.Linear(18, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 8))
key_net = copy.deepcopy(query_net).requires_grad_(False)
optimizer = torch.optim.SGD(query_net.parameters(), lr=0.05, momentum=0.9)
queue = deque([F.normalize(torch.randn(32, 8), dim=1)], maxlen=3)


def augmented(x):
    return x + 0.2 * torch.randn_like(x)


# %%
for batch in frames.split(32):
    query = F.normalize(query_net(augmented(batch)), dim=1)
    with torch.no_grad():
        for slow, fast in zip(key_net.parameters(), query_net.parameters(), strict=True):
            slow.mul_(0.95).add_(fast, alpha=0.05)
        key = F.normalize(key_net(augmented(batch)), dim=1)
    positive = (query * key).sum(1, keepdim=True)
    negative = query @ torch.cat(list(queue)).T
    logits = torch.cat([positive, negative], dim=1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue.append(key)
    print(round(loss.item(), 3))
