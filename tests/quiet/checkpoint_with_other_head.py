"""A checkpoint with another head: keys are picked by name and shape and put into the own state.
Tempts: checkpoint-keys-ignored."""

# %%

import io

import torch
from torch import nn

torch.manual_seed(80)


class N(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8))
        self.fc = nn.Linear(8, c)

    def forward(self, x):
        return self.fc(self.body(x))


file = io.BytesIO()
torch.save(N(10).state_dict(), file)
file.seek(0)

# %%

net = N(2)
sd = torch.load(file)
own = net.state_dict()
sd = {k: v for k, v in sd.items() if k in own and v.shape == own[k].shape}
own.update(sd)
net.load_state_dict(own)
