"""Stochastic weight averaging: AveragedModel, SWALR, and update_bn, which runs forward in train mode under no_grad.
Tempts: eval-missing (train mode without gradients), optimizer-of-another-model."""

# %%
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(20)
echoes = torch.randn(192, 10)
depth = echoes.square().sum(1, keepdim=True).sqrt()
loader = DataLoader(TensorDataset(echoes, depth), batch_size=32, shuffle=True)
sonar = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(sonar.parameters(), lr=0.02, momentum=0.9)
averaged = AveragedModel(sonar)
scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=2)

# %%
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(sonar(x), y).backward()
        optimizer.step()
    if epoch >= 2:
        averaged.update_parameters(sonar)
        scheduler.step()

# %%
update_bn(loader, averaged)
averaged.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(averaged(echoes), depth).item())
