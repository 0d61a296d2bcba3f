"""The loss is computed in one cell, looked at in a second, and backward and step follow in a third.
Tempts: graph-retained-in-list, eval-without-no-grad (a graph of megabytes is alive when the first cell ends)."""

# %%
import torch
from torch import nn

torch.manual_seed(31)
tiles, heights = torch.randn(512, 64), torch.randn(512, 1)
surface = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(surface.parameters(), lr=0.05)

# %%
optimizer.zero_grad()
loss = nn.functional.mse_loss(surface(tiles), heights)

# %%
print("loss before the step", loss.item(), loss.grad_fn)

# %%
loss.backward()
optimizer.step()

# %%
optimizer.zero_grad()
loss = nn.functional.mse_loss(surface(tiles), heights)
loss.backward()
optimizer.step()
print(loss.item())
