"""One encoder in two towers and one block at two depths, written out, in a notebook that repeats other things.
Tempts: same-module-repeated."""

# %%
import torch
from torch import nn

torch.manual_seed(3)
ones = [torch.ones(4)] * 3
linear = nn.Linear(4, 4)
history = [linear for _ in range(2)]


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.towers = nn.ModuleList([self.encoder, self.encoder])

    def forward(self, left, right):
        one, other = (tower(x) for tower, x in zip(self.towers, (left, right), strict=True))
        return (one - other).square().sum(1)


# %%
pair = Pair()
deep = nn.Sequential(linear, nn.Tanh(), linear, nn.Tanh())
optimizer = torch.optim.Adam([*pair.parameters(), *deep.parameters()], lr=1e-2)
same = torch.randint(0, 2, (32,)).float()
for _ in range(5):
    left, right = torch.randn(2, 32, 4)
    distance = pair(deep(left), deep(right))
    loss = (same * distance + (1 - same) * (1 - distance).clamp_min(0).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
