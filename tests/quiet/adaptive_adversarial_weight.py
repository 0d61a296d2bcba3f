"""A decoder with an adversarial term whose weight is a ratio of two gradient norms, cut from the history.
Tempts: retain-graph-growth, accidental-detach, missing-zero-grad of the critic."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
enc = nn.Linear(6, 4)
dec = nn.Linear(4, 6)
dis = nn.Linear(6, 1)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
dopt = torch.optim.Adam(dis.parameters())

# %%

for _ in range(4):
    x = torch.randn(16, 6)
    r = dec(enc(x))
    nll = (x - r).abs().mean()
    g = -dis(r).mean()
    ng = torch.autograd.grad(nll, dec.weight, retain_graph=True)[0]
    gg = torch.autograd.grad(g, dec.weight, retain_graph=True)[0]
    w = (ng.norm() / (gg.norm() + 1e-4)).clamp(0, 1e4).detach()
    loss = nll + w * g
    opt.zero_grad()
    loss.backward()
    opt.step()
    dl = nn.functional.relu(1 - dis(x)).mean() + nn.functional.relu(1 + dis(r.detach())).mean()
    dopt.zero_grad()
    dl.backward()
    dopt.step()
