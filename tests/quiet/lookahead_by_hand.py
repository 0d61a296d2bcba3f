"""Lookahead: slow weights are kept beside the fast ones, pulled after them every few steps and written back.
Tempts: state-dict-alias, data-attribute, weights-unchanged."""

# %%
import torch
from torch import nn

torch.manual_seed(61)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
inner = torch.optim.Adam(net.parameters(), lr=1e-2)
slow = [p.detach().clone() for p in net.parameters()]
x, y = torch.randn(64, 5), torch.randn(64, 1)

# %%
for step in range(1, 16):
    inner.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    inner.step()
    if step % 5 == 0:
        with torch.no_grad():
            for kept, fast in zip(slow, net.parameters(), strict=True):
                kept += 0.5 * (fast - kept)
                fast.copy_(kept)
print(loss.item())
