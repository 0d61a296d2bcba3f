"""The gradient of each task is computed alone, kept as a copy, and their mean is written to p.grad.
Tempts: zero-grad-misplaced (gradients cleared before every backward call but no step in between)."""

# %%
import torch
from torch import nn

torch.manual_seed(31)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
inputs, wanted = torch.randn(60, 5), torch.randn(60, 3)

# %%
for epoch in range(8):
    collected = []
    out = net(inputs)
    for task in range(3):
        opt.zero_grad()
        (out[:, task] - wanted[:, task]).square().mean().backward(retain_graph=task < 2)
        collected.append([p.grad.clone() for p in net.parameters()])
    opt.zero_grad()
    for p, *each in zip(net.parameters(), *collected, strict=True):
        p.grad = torch.stack(each).mean(0)
    opt.step()
