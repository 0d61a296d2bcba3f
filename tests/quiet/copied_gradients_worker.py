"""A3C in miniature: a local copy computes gradients, they are copied to the shared model, whose optimizer steps.
Tempts: optimizer-of-another-model (the loss never reaches what the optimizer holds)."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(56)
shared = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
workers = [copy.deepcopy(shared) for _ in range(2)]
optimizer = torch.optim.RMSprop(shared.parameters(), lr=5e-3)


def work(local, seed):
    local.load_state_dict(shared.state_dict())
    local.zero_grad()
    generator = torch.Generator().manual_seed(seed)
    scene = torch.randn(32, 6, generator=generator)
    loss = nn.functional.mse_loss(local(scene), scene.amax(1, keepdim=True))
    loss.backward()
    for ours, theirs in zip(shared.parameters(), local.parameters(), strict=True):
        ours.grad = theirs.grad.clone()
    return loss.item()


# %%
for turn in range(14):
    loss = work(workers[turn % 2], seed=turn)
    optimizer.step()
print(loss)
