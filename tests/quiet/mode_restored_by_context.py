"""A context manager evaluates in the middle of an epoch and puts the earlier mode back, also after an error.
Tempts: train-not-restored (inference passes between training steps)."""

# %%
import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def evaluating(module):
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield module
    finally:
        module.train(was_training)


# %%
torch.manual_seed(34)
fibres, strength = torch.randn(200, 6), torch.randn(200, 1)
loom = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(loom.parameters(), lr=1e-2)

# %%
for step, chunk in enumerate(torch.randperm(200).split(20)):
    optimizer.zero_grad()
    nn.functional.mse_loss(loom(fibres[chunk]), strength[chunk]).backward()
    optimizer.step()
    if step % 3 == 0:
        with evaluating(loom):
            print(step, nn.functional.mse_loss(loom(fibres), strength).item())
