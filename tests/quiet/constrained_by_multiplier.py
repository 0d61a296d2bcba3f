"""A constraint with a multiplier that goes uphill: one backward call, two optimizers, one of them maximizes.
Tempts: signed-sum-loss, learning-rate-divergence, parameters-missing-from-optimizer."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
pi = nn.Linear(3, 2)
lam = torch.zeros(1, requires_grad=True)
po = torch.optim.SGD(pi.parameters(), 0.1)
lo = torch.optim.SGD([lam], 0.1, maximize=True)

# %%

for _ in range(5):
    o = pi(torch.randn(16, 3))
    cost = o.pow(2).mean() - 0.5
    L = o.mean() + nn.functional.softplus(lam) * cost
    po.zero_grad()
    lo.zero_grad()
    L.backward()
    po.step()
    lo.step()
