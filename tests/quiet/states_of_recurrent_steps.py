"""Attention over the members of a group at each time step, time in front; a float32 model of float16 data with gaps.
Tempts: softmax-over-batch, half-overflow, view-where-permute-meant."""

# %%
import torch
from torch import nn

torch.manual_seed(5)
recurrent, score, head = nn.GRU(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)
parameters = [*recurrent.parameters(), *score.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
series, wanted = torch.randn(12, 5, 6), torch.randn(12)  # (time, members, features)

# %%
for _ in range(3):
    hidden, _ = recurrent(series)
    weight = torch.softmax(score(hidden), dim=0)  # how much each moment counts for a member
    mixed = (weight * hidden).sum(1)
    loss = (head(mixed).squeeze(1) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
raw = torch.randn(8, 16).half()
raw[2, :4] = torch.nan
autoencoder = nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 16)).eval()
with torch.no_grad():
    filled = torch.nan_to_num(raw).float()
    again = autoencoder(filled)
assert again.isfinite().all()
