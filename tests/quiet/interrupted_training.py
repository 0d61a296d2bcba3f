"""Training is interrupted by KeyboardInterrupt in the middle of an epoch, caught, looked at and resumed.
Tempts: missing-zero-grad, train-not-restored (a cut between backward and step, then an evaluation)."""

# %%
import torch
from torch import nn

torch.manual_seed(64)
pollen, season = torch.randn(100, 5), torch.randint(0, 3, (100,))
counter = nn.Sequential(nn.Linear(5, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(counter.parameters(), lr=0.1)
done_steps = 0


def train(steps, stop_at=None):
    global done_steps
    counter.train()
    for step in range(steps):
        chunk = torch.randint(0, 100, (20,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(counter(pollen[chunk]), season[chunk]).backward()
        if step == stop_at:
            raise KeyboardInterrupt
        optimizer.step()
        done_steps += 1


# %%
try:
    train(20, stop_at=7)
except KeyboardInterrupt:
    print("stopped after", done_steps, "steps")

# %%
counter.eval()
with torch.no_grad():
    print((counter(pollen).argmax(1) == season).float().mean().item())

# %%
train(20)
print(done_steps)
