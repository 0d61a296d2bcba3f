"""Gradients that are stopped on purpose: a frozen stem, a switch for warming up, a head that only watches.
Tempts: accidental-detach (what comes before a detach gets no gradient from that path)."""

# %%
import torch
from torch import nn

torch.manual_seed(6)
leaf, weight = torch.randn(80, 6), torch.rand(80, 1)


class Plant(nn.Module):
    def __init__(self, tune=False):
        super().__init__()
        self.stem, self.bud, self.watcher = nn.Linear(6, 10), nn.Linear(10, 1), nn.Linear(10, 1)
        self.tune = tune

    def forward(self, x):
        sap = torch.relu(self.stem(x))
        if not self.tune:
            sap = sap.detach()
        return self.bud(sap), self.watcher(sap.detach())


plant = Plant()
optimizer = torch.optim.Adam(plant.parameters(), lr=0.01)
for epoch in range(8):
    plant.tune = epoch >= 4
    optimizer.zero_grad()
    grown, watched = plant(leaf)
    loss = nn.functional.mse_loss(grown, weight) + nn.functional.mse_loss(watched, grown.detach())
    loss.backward()
    optimizer.step()

# %%
plant.stem.requires_grad_(False)
plant.tune = False
for epoch in range(4):
    optimizer.zero_grad()
    nn.functional.mse_loss(plant(leaf)[0], weight).backward()
    optimizer.step()

# %%
ivy = Plant(tune=True)
ivy.stem.requires_grad_(False)
climbing = torch.optim.Adam(ivy.parameters(), lr=0.01)
for epoch in range(9):
    ivy.stem.requires_grad_(epoch > 4)
    climbing.zero_grad()
    hidden = ivy.stem(leaf)
    loss = nn.functional.mse_loss(ivy.bud(hidden), weight) + ivy.watcher(hidden.detach()).pow(2).mean()
    loss.backward()
    climbing.step()
