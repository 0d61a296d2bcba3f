"""Gradients of four small batches are added up before each step; the short last group is scaled by its own size.
Tempts: missing-zero-grad (several backward calls per clearing)."""

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
readings = torch.randn(150, 6)
demand = readings @ torch.randn(6, 1) + 0.1 * torch.randn(150, 1)
loader = DataLoader(TensorDataset(readings, demand), batch_size=15, shuffle=True)
meter = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(meter.parameters(), lr=1e-2)
GROUP = 4

# %%
for epoch in range(4):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(loader, start=1):
        first_of_group = (number - 1) // GROUP * GROUP
        group_size = min(GROUP, len(loader) - first_of_group)
        loss = nn.functional.mse_loss(meter(x), y) / group_size
        loss.backward()
        if number % GROUP == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, round(loss.item(), 4))
