"""An exponential moving average of the weights lives in a copy, which is the one that gets evaluated.
Tempts: optimizer-of-another-model (the evaluated model is in no optimizer), train-not-restored."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(19)
grain = torch.randn(180, 9)
grade = grain[:, :3].argmax(1)
net = nn.Sequential(nn.Linear(9, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
average = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)


@torch.no_grad()
def follow(decay):
    for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
        slow.lerp_(fast, 1 - decay)
    for slow, fast in zip(average.buffers(), net.buffers(), strict=True):
        slow.copy_(fast)


# %%
for epoch in range(4):
    for x, y in zip(grain.split(30), grade.split(30), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        follow(decay=0.9)
    with torch.no_grad():
        print(epoch, (average(grain).argmax(1) == grade).float().mean().item())
