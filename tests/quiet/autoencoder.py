"""A denoising autoencoder: mse between reconstruction and input, equal shapes, sigmoid output and no classes.
Tempts: loss-broadcast, eval-without-no-grad (the codes are read with eval() and no_grad afterwards)."""

# %%
import torch
from torch import nn

torch.manual_seed(45)
stamps = torch.rand(120, 1, 8, 8)
encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 6))
decoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
restorer = nn.Sequential(encoder, decoder)
optimizer = torch.optim.Adam(restorer.parameters(), lr=5e-3)

# %%
for epoch in range(4):
    restorer.train()
    for clean in stamps.split(30):
        noisy = (clean + 0.2 * torch.randn_like(clean)).clamp(0, 1)
        loss = nn.functional.mse_loss(restorer(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))

# %%
encoder.eval()
with torch.no_grad():
    codes = encoder(stamps)
codes
