"""Maximum mean discrepancy: kernels between all pairs of a generated and a real sample, mean over the matrix.
Tempts: loss-broadcast ((N, 1) against (N,) in one dimension, meant as all pairs)."""

# %%
import torch
from torch import nn

torch.manual_seed(38)
warp = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(warp.parameters(), lr=1e-2)


def affinity(a, b):
    gap = a.unsqueeze(1) - b.unsqueeze(0)
    return torch.exp(-gap.square()).mean()


# %%
for _ in range(20):
    real = torch.randn(48).exp()
    made = warp(torch.randn(48, 1)).squeeze(1)
    loss = affinity(made, made) - 2 * affinity(made, real) + affinity(real, real)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
