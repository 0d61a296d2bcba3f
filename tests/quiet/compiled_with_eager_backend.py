"""torch.compile(backend="eager"): training goes through the compiled wrapper, the optimizer was made from the original.
Tempts: optimizer-of-another-model (parameters are reached as compiled._orig_mod), eval-missing."""

# %%
import torch
from torch import nn

torch.manual_seed(65)
gusts, lift = torch.randn(60, 4), torch.randn(60, 1)
wing = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
compiled = torch.compile(wing, backend="eager")
optimizer = torch.optim.Adam(wing.parameters(), lr=1e-2)

# %%
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(compiled(gusts), lift)
    loss.backward()
    optimizer.step()

# %%
wing.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(wing(gusts), lift).item() < loss.item())
