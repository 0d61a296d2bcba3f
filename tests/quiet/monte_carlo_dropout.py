"""Uncertainty from dropout: the network is in eval mode except for its dropout layers, thirty passes under no_grad.
Tempts: eval-missing (a trained model whose dropout is on, under no_grad)."""

# %%
import torch
from torch import nn

torch.manual_seed(21)
tide = torch.linspace(-3, 3, 96).unsqueeze(1)
level = tide.sin() + 0.1 * torch.randn(96, 1)
gauge = nn.Sequential(nn.Linear(1, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.2), nn.Linear(40, 1))
optimizer = torch.optim.AdamW(gauge.parameters(), lr=1e-2)


def train(epochs):
    gauge.train()
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.mse_loss(gauge(tide), level).backward()
        optimizer.step()


def switch_dropout_on(module):
    for layer in module.modules():
        if isinstance(layer, nn.Dropout):
            layer.train()


# %%
train(30)

# %%
gauge.eval()
switch_dropout_on(gauge)
with torch.no_grad():
    passes = torch.stack([gauge(tide) for _ in range(30)])
print("spread", passes.std(0).mean().item())
