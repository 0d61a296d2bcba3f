"""The cell that makes the model makes its optimizer too; both are run a second time and training starts over.
Tempts: optimizer-of-another-model (two generations of one name), eval-missing."""

# %%
import torch
from torch import nn

torch.manual_seed(54)
ink, page = torch.randn(96, 6), torch.randn(96, 1)
results = []

# %%
net = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

# %%
net.train()
for _ in range(8):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(ink), page).backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    results.append(nn.functional.mse_loss(net(ink), page).item())

# %%
net = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

# %%
net.train()
for _ in range(8):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(ink), page).backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    results.append(nn.functional.mse_loss(net(ink), page).item())
print(results)
