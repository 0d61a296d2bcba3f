"""Reptile meta-learning: a copy trains on a task with its own SGD, the outer optimizer gets the difference as gradient.
Tempts: optimizer-of-another-model, missing-zero-grad (outer gradients are written, never computed by backward)."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(57)
meta = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
outer = torch.optim.Adam(meta.parameters(), lr=1e-2)


def adapt(model, steps=5):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=0.05)
    height, shift = torch.rand(2) * 3
    x = torch.rand(20, 1) * 6 - 3
    y = height * (x + shift).sin()
    for _ in range(steps):
        inner.zero_grad()
        loss = nn.functional.mse_loss(learner(x), y)
        loss.backward()
        inner.step()
    return learner, loss.item()


# %%
for _ in range(10):
    learner, loss = adapt(meta)
    for slow, fast in zip(meta.parameters(), learner.parameters(), strict=True):
        slow.grad = slow.detach() - fast.detach()
    outer.step()
print(loss)
