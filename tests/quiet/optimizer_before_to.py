"""The optimizer is made before model.to(device); parameters are converted in place, so it stays valid.
Tempts: optimizer-of-another-model, device-mismatch."""

# %%
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(58)
cargo, weight = torch.randn(72, 5), torch.rand(72, 1)
crane = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(crane.parameters(), lr=1e-2)

# %%
crane = crane.to(device)

# %%
for x, y in zip(cargo.split(24), weight.split(24), strict=True):
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(crane(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
