"""A trained decoder in eval mode is inverted: after an inference pass, steps are taken on the code alone.
Tempts: train-not-restored, optimizer-of-another-model (the model's parameters are in no optimizer that steps)."""

# %%
import torch
from torch import nn

torch.manual_seed(70)
codes, glyphs = torch.randn(120, 4), torch.rand(120, 25)
decoder = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 25))
training = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for x, y in zip(codes.split(40), glyphs.split(40), strict=True):
    training.zero_grad()
    nn.functional.mse_loss(decoder(x), y).backward()
    training.step()

# %%
decoder.eval()
with torch.no_grad():
    wanted = decoder(torch.randn(1, 4))

# %%
decoder.requires_grad_(False)
code = torch.zeros(1, 4, requires_grad=True)
search = torch.optim.Adam([code], lr=0.1)
for _ in range(30):
    search.zero_grad()
    distance = nn.functional.mse_loss(decoder(code), wanted)
    distance.backward()
    search.step()
print(distance.item(), code.tolist())
