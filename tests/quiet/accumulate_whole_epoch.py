"""Full-batch gradient descent on data too big for one forward pass: every chunk goes backward, one step per epoch.
Tempts: missing-zero-grad (five backward calls, one step, one clearing)."""

# %%
import torch
from torch import nn

torch.manual_seed(11)
spectra = torch.randn(250, 12)
is_ore = (spectra[:, :3].sum(1) > 0).float()
probe = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.RMSprop(probe.parameters(), lr=5e-3)


def full_gradient(chunks):
    total = 0.0
    for x, y in chunks:
        loss = nn.functional.binary_cross_entropy_with_logits(probe(x).squeeze(1), y, reduction="sum") / len(spectra)
        loss.backward()
        total += loss.item()
    return total


# %%
chunks = list(zip(spectra.split(50), is_ore.split(50), strict=True))
history = []
for _ in range(10):
    probe.zero_grad()
    history.append(full_gradient(chunks))
    optimizer.step()
print(history[0], history[-1])
