"""A long cell is stopped by hand in the middle of an epoch and run again; nothing is wrong with either.
Tempts: missing-zero-grad, traceback-pins-tensors, train-not-restored."""

# %%
import torch
from torch import nn

torch.manual_seed(76)
net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.1), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = torch.randn(64, 6), torch.randint(0, 2, (64,))
losses, stop_at = [], 5

# %%
net.train()
try:
    for step in range(10):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        if len(losses) == stop_at:
            raise KeyboardInterrupt
        opt.step()
        losses.append(loss.item())
except KeyboardInterrupt:
    print("stopped at", len(losses))

# %%
net.train()
for step in range(5):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(losses[-1])
