"""Ranking: all score differences, scores (N, 1) minus scores (1, N), compared with all relevance differences.
Tempts: loss-broadcast (an (N, N) matrix under a mean, built from vectors of length N)."""

# %%
import torch
from torch import nn

torch.manual_seed(37)
recipes = torch.randn(36, 8)
stars = recipes[:, 0] - 0.5 * recipes[:, 3] + 0.2 * torch.randn(36)
ranker = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(ranker.parameters(), lr=1e-2)
better = (stars.unsqueeze(1) > stars.unsqueeze(0)).float()

# %%
for _ in range(15):
    score = ranker(recipes)
    margin = score - score.T
    loss = (better * nn.functional.softplus(-margin)).sum() / better.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
with torch.no_grad():
    score = ranker(recipes).squeeze(1)
    agreement = ((score[:, None] - score[None, :]) * (stars[:, None] - stars[None, :]) > 0).float().mean()
print(agreement.item())
