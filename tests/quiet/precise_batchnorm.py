"""Batch statistics are re-estimated after training: train mode under no_grad over the data, outputs thrown away.
Tempts: eval-missing (a trained model with BatchNorm in train mode, no gradients)."""

# %%
import torch
from torch import nn

torch.manual_seed(73)
quakes, magnitude = torch.randn(180, 9), torch.rand(180, 1) * 8
model = nn.Sequential(nn.Linear(9, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for x, y in zip(quakes.split(36), magnitude.split(36), strict=True):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


# %%
@torch.no_grad()
def reestimate_statistics(model, batches):
    """Replace running averages by the plain mean over all batches."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.reset_running_stats()
            layer.momentum = None
    model.train()
    for x in batches:
        model(x)
    model.eval()


# %%
reestimate_statistics(model, quakes.split(36))
with torch.no_grad():
    print(nn.functional.mse_loss(model(quakes), magnitude).item())
