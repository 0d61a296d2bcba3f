"""Averaged weights are put in for the evaluation and taken out again by copies.
Tempts: state-dict-alias, data-attribute, train-not-restored."""

# %%

import copy

import torch
from torch import nn

torch.manual_seed(80)
m = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(m.parameters())
shadow = {k: v.clone() for k, v in m.named_parameters()}

# %%

for ep in range(2):
    m.train()
    for _ in range(4):
        opt.zero_grad()
        (m(torch.randn(16, 4)) ** 2).mean().backward()
        opt.step()
        with torch.no_grad():
            for k, v in m.named_parameters():
                shadow[k].lerp_(v, 0.1)
    backup = {k: v.clone() for k, v in m.named_parameters()}
    with torch.no_grad():
        for k, v in m.named_parameters():
            v.copy_(shadow[k])
    m.eval()
    with torch.no_grad():
        val = m(torch.randn(8, 4)).pow(2).mean().item()
    with torch.no_grad():
        for k, v in m.named_parameters():
            v.copy_(backup[k])
