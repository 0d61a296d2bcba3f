"""A critic whose targets come from itself, weighted by importance; names that are given several values one by one.
Tempts: loss-broadcast, silent-broadcast, view-where-permute-meant, uint8-arithmetic-wraps, accidental-detach.
"""

# %%
import torch
from torch import nn

torch.manual_seed(71)
body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
critic, slow = nn.Sequential(body, nn.Linear(4, 1)), nn.Linear(4, 1)
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
frames = torch.randint(0, 256, (32, 9, 11, 3), dtype=torch.uint8)


# %%
class Prepared:
    """Bytes with the colours last to floats with the colours first."""

    def __init__(self, mean):
        self.mean = mean

    def __call__(self, picture):
        picture = picture.float() / 255
        picture = picture - self.mean
        count, height, width, colours = picture.shape
        picture = picture.reshape(count, height * width, colours)
        picture = picture.transpose(1, 2)
        return picture.reshape(count, colours, height, width)


def learn(state, following, reward, done, weight):
    with torch.no_grad():
        target = reward.unsqueeze(1) + 0.9 * critic(following) * (1 - done.unsqueeze(1))
    error = target - critic(state)
    loss = (weight * error.squeeze(1).pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return error.detach().abs().squeeze(1)


# %%
prepared = Prepared(0.5)
state = frames
state = prepared(state)
weight = torch.ones(32)
for _ in range(5):
    order = torch.randperm(32)
    errors = learn(state, state[order], torch.rand(32), torch.zeros(32), weight)
    weight = errors / errors.max()
    weight = weight.clamp(min=0.1)

# %%
with torch.no_grad():
    values = critic(state)
    values = values.squeeze(1)
    gap = values - weight
