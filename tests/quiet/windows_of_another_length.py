"""Sequences are cut into segments, as many as there are sequences, and put together again; windows of another length.
Tempts: view-where-permute-meant."""

# %%
import torch
from torch import nn

torch.manual_seed(0)


class Segments(nn.Module):
    def __init__(self, width, segment):
        super().__init__()
        self.inner, self.mix, self.out = nn.Linear(5, width), nn.Linear(width, width), nn.Linear(width, 1)
        self.segment = segment

    def forward(self, x):
        batch, time, _ = x.shape
        h = self.inner(x)
        h = h.reshape(-1, self.segment, h.shape[-1])
        h = torch.relu(self.mix(h - h.mean(1, keepdim=True)))
        return self.out(h.reshape(batch, time, -1)).squeeze(-1)


net = Segments(16, 8)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

# %%
for step in range(5):
    x = torch.randn(8, 64, 5)
    loss = (net(x) - x.sum(-1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# %%
numbers = torch.arange(24).view(2, 3, 4)
numbers.view(3, 2, 4).shape
