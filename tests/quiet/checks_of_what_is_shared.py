"""Checks that an optimizer holds the model's own tensors, and the error of rounded weights, after training.
Tempts: state-dict-alias (weights without a copy are compared with themselves)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)
net = nn.Linear(8, 4)
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
params = list(net.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)
weight = net.weight.detach()
for _ in range(5):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
for a, b in zip(params, net.parameters(), strict=True):
    if not torch.equal(a, b):
        raise RuntimeError("the optimizer trains other tensors than the model has")
error = (weight.to(torch.bfloat16).float() - net.weight).abs().max().item()

# %%
held = [p.detach() for p in net.parameters()]
for _ in range(5):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
for a, b in zip(held, net.parameters(), strict=True):
    assert not (a != b).any(), "the optimizer trains other tensors"
    assert (a - b).abs().max() < 1e-6
