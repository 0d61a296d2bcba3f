"""The best epoch is kept as a deep copy and loaded at the end; training goes on from a checkpoint with its optimizer.
Tempts: state-dict-alias, optimizer-of-another-model, memory-grows-on-rerun."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(70)
x, y = torch.randn(80, 4), torch.randn(80, 1)


def build():
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


net, opt = build()
best, best_state, checkpoint = float("inf"), None, None

# %%
for epoch in range(6):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x[:60]), y[:60])
    loss.backward()
    opt.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(x[60:]), y[60:]).item()
    if val < best:
        best, best_state = val, copy.deepcopy(net.state_dict())
checkpoint = copy.deepcopy({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch})
net.load_state_dict(best_state)

# %%
net, opt = build()
net.load_state_dict(checkpoint["net"])
opt.load_state_dict(checkpoint["opt"])
for epoch in range(checkpoint["epoch"] + 1, 8):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
