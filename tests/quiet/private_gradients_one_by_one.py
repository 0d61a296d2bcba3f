"""Private training without vmap: the gradient of each sample is clipped, added up and written back with noise.
Tempts: zero-grad-misplaced (cleared for every sample), clip findings, accumulation-unscaled."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)

# %%

for _ in range(3):
    x, y = torch.randn(6, 5), torch.randint(0, 2, (6,))
    acc = [torch.zeros_like(p) for p in net.parameters()]
    for i in range(6):
        net.zero_grad()
        nn.functional.cross_entropy(net(x[i : i + 1]), y[i : i + 1]).backward()
        n = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for a, p in zip(acc, net.parameters()):
            a += p.grad
    for p, a in zip(net.parameters(), acc):
        p.grad = a / 6 + 0.01 * torch.randn_like(a)
    opt.step()
