"""A column of times meets a row of frequencies, a buffer or a parameter, in a batch that has as many.
Tempts: silent-broadcast."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Waves(nn.Module):
    def __init__(self, half, learned):
        super().__init__()
        if learned:
            self.freqs = nn.Parameter(torch.rand(half))
        else:
            self.register_buffer("freqs", torch.rand(half))
        self.out = nn.Linear(2 * half, 1)

    def forward(self, t):
        angles = t * self.freqs
        return self.out(torch.cat([angles.sin(), angles.cos()], -1))


fixed, learned = Waves(32, False), Waves(32, True)

# %%
t = torch.rand(32, 1)
y = torch.sin(5 * t)
for net in (fixed, learned):
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(5):
        loss = F.mse_loss(net(t), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

# %%
fixed(t).shape
