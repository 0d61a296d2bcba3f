"""A batch with a non-finite gradient norm is skipped: its gradients are cleared and no step is taken.
Tempts: zero-grad-misplaced (one backward is thrown away), missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(75)
ticks = torch.randn(160, 3)
ticks[50, 1] = float("inf")
price = torch.randn(160, 1)
broker = nn.Sequential(nn.Linear(3, 16), nn.Softsign(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(broker.parameters(), lr=0.05)
skipped = 0

# %%
for x, y in zip(ticks.split(20), price.split(20), strict=True):
    optimizer.zero_grad()
    nn.functional.mse_loss(broker(x), y).backward()
    norm = nn.utils.clip_grad_norm_(broker.parameters(), 1.0)
    if not torch.isfinite(norm):
        optimizer.zero_grad()
        skipped += 1
        continue
    optimizer.step()
print("skipped", skipped)
