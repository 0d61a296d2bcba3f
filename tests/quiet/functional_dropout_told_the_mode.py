"""Dropout as a function that is told the mode, as noise on training data, and on purpose with many passes.
Tempts: functional-dropout-always-on, grad-disabled-globally."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(91)
signals, kinds = torch.randn(96, 10), torch.randint(0, 3, (96,))


class Sorter(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.inside, self.outside = nn.Linear(10, 30), nn.Linear(30, 3)

    def forward(self, rows):
        hidden = F.dropout(F.relu(self.inside(rows)), self.rate, self.training)
        if self.training:
            hidden = F.dropout(hidden, 0.05)
        return self.outside(hidden)


class Sampler(nn.Module):
    def __init__(self, sorter):
        super().__init__()
        self.sorter = sorter

    def forward(self, rows):
        return self.sorter(F.dropout(rows, 0.1, training=True)).softmax(-1)


def corrupted(rows):
    return F.dropout(rows, 0.2)


# %%
sorter = Sorter(0.3)
optimizer = torch.optim.Adam(sorter.parameters(), lr=1e-2)
sorter.train()
for _ in range(12):
    optimizer.zero_grad()
    F.cross_entropy(sorter(corrupted(signals)), kinds).backward()
    optimizer.step()

# %%
sorter.eval()
with torch.set_grad_enabled(False):
    answers = sorter(signals).argmax(1)
sampler = Sampler(sorter).eval()
with torch.no_grad():
    chances = torch.stack([sampler(signals) for _ in range(25)]).mean(0)
print((answers == kinds).float().mean().item(), chances.max().item())
