"""The old variant of checkpoint, chosen on purpose, on layers whose input has a history; evaluated without gradients."""

# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
stem, body, head = nn.Linear(6, 24), nn.Sequential(nn.Linear(24, 24), nn.Tanh()), nn.Linear(24, 1)
optimizer = torch.optim.SGD([*stem.parameters(), *body.parameters(), *head.parameters()], lr=0.05)
depth, salt = torch.randn(64, 6), torch.randn(64, 1)

# %%
for some, truth in zip(depth.split(16), salt.split(16)):
    optimizer.zero_grad()
    hidden = checkpoint(body, stem(some), use_reentrant=True)
    nn.functional.mse_loss(head(hidden), truth).backward()
    optimizer.step()
with torch.no_grad():
    error = nn.functional.mse_loss(head(checkpoint(body, stem(depth), use_reentrant=True)), salt).item()
