"""A grid over learning rates and widths; model, optimizer and scheduler are local to the function that runs one point.
Tempts: optimizer-of-another-model, late-binding-closure (a table of results is filled from a loop)."""

# %%
import itertools

import torch
from torch import nn

torch.manual_seed(62)
grid_load = torch.randn(140, 6)
outage = (grid_load.square().sum(1) > 6).float()


def run_point(rate, width, steps=15):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(model(grid_load[:100]).squeeze(1), outage[:100]).backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        return criterion(model(grid_load[100:]).squeeze(1), outage[100:]).item()


# %%
table = {}
for rate, width in itertools.product((1e-3, 1e-2), (8, 32)):
    table[rate, width] = run_point(rate, width)
best = min(table, key=lambda point: table[point])
print(best, table[best])
