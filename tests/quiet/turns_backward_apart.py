"""Two losses of one step go backward one after the other; their sum is made anew in each step, for the report.
Tempts: graph-retained-in-list (the sum reaches over two backward calls), accumulation-unscaled."""

# %%
import torch
from torch import nn

torch.manual_seed(2)
sounds, noises = torch.randn(256, 12) + 1, torch.randn(256, 12) - 1
ear = nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
optimizer = torch.optim.Adam(ear.parameters(), lr=1e-3)
yes, no = torch.ones(32), torch.zeros(32)
history = []

# %%
for step, (sound, noise) in enumerate(zip(sounds.split(32), noises.split(32))):
    optimizer.zero_grad()
    heard = nn.functional.binary_cross_entropy_with_logits(ear(sound).view(-1), yes)
    heard.backward()
    missed = nn.functional.binary_cross_entropy_with_logits(ear(noise).view(-1), no)
    missed.backward()
    both = heard + missed
    optimizer.step()
    history.append(both.item())
print(history[0], history[-1])
