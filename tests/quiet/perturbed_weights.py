"""Weights are shaken before each pass and put back before the step, so that flat minima win.
Tempts: data-attribute, step-between-backwards, inplace-on-saved, weights-unchanged."""

# %%
import torch
from torch import nn

torch.manual_seed(74)
net = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x, y = torch.randn(64, 6), torch.randn(64, 1)

# %%
for step in range(8):
    with torch.no_grad():
        noise = [0.01 * torch.randn_like(p) for p in net.parameters()]
        for p, n in zip(net.parameters(), noise, strict=True):
            p.add_(n)
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    with torch.no_grad():
        for p, n in zip(net.parameters(), noise, strict=True):
            p.sub_(n)
    opt.step()
print(loss.item())
