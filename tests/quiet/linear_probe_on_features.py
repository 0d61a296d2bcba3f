"""A linear probe: features are computed once by a trained encoder in eval mode, then only a linear layer is fitted.
Tempts: train-not-restored (steps are taken while the encoder rests in eval)."""

# %%
import torch
from torch import nn

torch.manual_seed(4)
signals = torch.randn(160, 1, 64)
kind = (signals[:, 0, :8].mean(1) > 0).long()
encoder = nn.Sequential(nn.Conv1d(1, 6, 5, stride=2), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.1), nn.Flatten())
decoder = nn.Linear(180, 64)
both = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for batch in signals.split(40):
    both.zero_grad()
    nn.functional.mse_loss(decoder(encoder(batch)), batch.squeeze(1)).backward()
    both.step()

# %%
encoder.eval()
with torch.no_grad():
    features = encoder(signals)
features.shape

# %%
probe = nn.Linear(180, 2)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.05, weight_decay=1e-3)
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(probe(features), kind)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print((probe(features).argmax(1) == kind).float().mean().item())
