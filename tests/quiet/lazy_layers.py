"""Lazy modules get their sizes from one batch, then the optimizer is made from the finished parameters.
Tempts: optimizer-of-another-model, eval-missing (a first call under no_grad in train mode)."""

# %%
import torch
from torch import nn

torch.manual_seed(60)
chart, harbour = torch.randn(64, 2, 30), torch.randint(0, 3, (64,))
pilot = nn.Sequential(
    nn.LazyConv1d(6, 5), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(3)
)

# %%
with torch.no_grad():
    pilot(chart[:4])
optimizer = torch.optim.AdamW(pilot.parameters(), lr=3e-3)
for epoch in range(3):
    for x, y in zip(chart.split(16), harbour.split(16), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(pilot(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))
