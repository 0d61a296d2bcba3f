"""Activation checkpointing without reentrance: blocks run a second time inside backward, then validation in eval.
Tempts: eval-missing, missing-zero-grad (forward calls during backward)."""

# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Tower(nn.Module):
    def __init__(self, width, floors):
        super().__init__()
        self.floors = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1))
            for _ in range(floors)
        )
        self.roof = nn.Linear(width, 1)

    def forward(self, x):
        for floor in self.floors:
            x = x + (checkpoint(floor, x, use_reentrant=False) if self.training else floor(x))
        return self.roof(x)


torch.manual_seed(68)
bricks, height = torch.randn(96, 16), torch.randn(96, 1)
tower = Tower(16, floors=4)
optimizer = torch.optim.AdamW(tower.parameters(), lr=3e-3)

# %%
for epoch in range(3):
    tower.train()
    for x, y in zip(bricks.split(32), height.split(32), strict=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(tower(x), y).backward()
        optimizer.step()
    tower.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(tower(bricks), height).item())
