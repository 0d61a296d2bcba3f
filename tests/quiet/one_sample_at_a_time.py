"""Online learning: one sample per step, the prediction has shape (1,), its target is a scalar tensor.
Tempts: loss-broadcast (shapes differ, nothing is stretched)."""

# %%
import torch
from torch import nn

torch.manual_seed(89)
stream = torch.randn(80, 4)
level = stream @ torch.tensor([1.0, -2.0, 0.5, 0.0])
filter_ = nn.Linear(4, 1)
optimizer = torch.optim.SGD(filter_.parameters(), lr=0.05)

# %%
squared_errors = []
for x, y in zip(stream, level, strict=True):
    loss = (filter_(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    squared_errors.append(loss.item())
print(sum(squared_errors[:10]) / 10, sum(squared_errors[-10:]) / 10)
