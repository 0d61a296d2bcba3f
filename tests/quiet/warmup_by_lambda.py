"""Learning-rate lambdas for parameter groups, each bound by a default argument; the schedule moves once per step.
Tempts: late-binding-closure (a list of lambdas that outlives its loop)."""

# %%
import torch
from torch import nn

torch.manual_seed(52)
orbits, period = torch.rand(80, 4), torch.rand(80, 1)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
layers = [layer for layer in model if isinstance(layer, nn.Linear)]
groups = [{"params": layer.parameters(), "lr": 0.01 * 0.7**depth} for depth, layer in enumerate(reversed(layers))]
optimizer = torch.optim.Adam(groups)
factors = []
for depth in range(len(groups)):
    factors.append(lambda step, wait=2 * depth: min(1.0, max(0.0, (step - wait) / 5)))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factors)

# %%
for _ in range(12):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(orbits), period)
    loss.backward()
    optimizer.step()
    scheduler.step()
print([round(rate, 4) for rate in scheduler.get_last_lr()], loss.item())
