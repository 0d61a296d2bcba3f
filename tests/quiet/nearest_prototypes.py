"""Prototypes, soft assignment and additive attention: pairs on purpose, without a table in every coordinate.
Tempts: broadcast-blowup (all pairs; one table (N, M, D), which a layer reads)."""

# %%
import torch
from torch import nn

torch.manual_seed(62)
insects, kinds = torch.randn(400, 96), nn.Parameter(torch.randn(60, 96))
mix, read = nn.Linear(96, 96), nn.Linear(96, 1)
optimizer = torch.optim.Adam([kinds, *mix.parameters(), *read.parameters()], lr=1e-3)

# %%
for _ in range(3):
    optimizer.zero_grad()
    features = mix(insects)
    near = torch.cdist(features, kinds).softmax(dim=1)
    chosen = near @ kinds
    attention = read(torch.tanh(features[:, None] + kinds)).squeeze(-1).softmax(dim=1)
    loss = (chosen - features).pow(2).mean() + (attention - near).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
del features, near, chosen, attention
