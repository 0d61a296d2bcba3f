"""Word vectors are put into the state of a model, another entry is changed in place, then it is loaded.
Tempts: checkpoint-keys-ignored (most values are the own ones), dense-embedding-gradient."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
m = nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(8, 2))
glove = torch.randn(20, 4)

# %%

sd = m.state_dict()
sd.update({"0.weight": glove})
m.load_state_dict(sd)
sd = m.state_dict()
sd["2.bias"].zero_()
m.load_state_dict(sd)
m[0].weight.requires_grad = False
opt = torch.optim.Adam([p for p in m.parameters() if p.requires_grad])
for _ in range(3):
    opt.zero_grad()
    nn.functional.cross_entropy(m(torch.randint(0, 20, (8, 2))), torch.randint(0, 2, (8,))).backward()
    opt.step()
