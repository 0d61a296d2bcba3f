"""RealNVP: the mean log-likelihood goes up, so the loss is a sum with a sign; a mask is a buffer.
Tempts: signed-sum-loss, tensor-attribute-not-buffer, shape findings of masks."""

# %%
import math

import torch
from torch import nn

torch.manual_seed(56)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0]) if flip else torch.tensor([0.0, 1.0]))
        self.scale = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2), nn.Tanh())
        self.shift = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        kept = x * self.mask
        s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * s.exp() + t), s.sum(1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(bool(i % 2)) for i in range(depth))

    def log_prob(self, x):
        log_det = x.new_zeros(len(x))
        for layer in self.layers:
            x, one = layer(x)
            log_det = log_det + one
        return log_det - 0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)


flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=1e-3)

# %%
for it in range(8):
    batch = torch.randn(64, 2) @ torch.tensor([[1.0, 0.8], [0.0, 0.5]])
    loss = -flow.log_prob(batch).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
