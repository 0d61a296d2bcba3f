"""Attention whose slots compete for the inputs, beside one over the keys; gates of experts that stand first.
Tempts: softmax-over-batch, view-where-permute-meant, silent-broadcast.
"""

# %%
import torch
from torch import nn

torch.manual_seed(72)


class Slots(nn.Module):
    def __init__(self, count=3, size=8):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(count, size))
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.gate, self.experts = nn.Linear(size, 4), nn.Parameter(torch.randn(4, size, size) / 3)

    def forward(self, x):
        slots = self.slots.expand(x.size(0), -1, -1)
        scores = self.k(x) @ self.q(slots).transpose(1, 2)
        share = scores.softmax(dim=-1) + 1e-8
        slots = (share / share.sum(dim=1, keepdim=True)).transpose(1, 2) @ self.v(x)
        weights = torch.softmax(self.gate(slots).permute(2, 0, 1), dim=0)
        each = torch.stack([slots @ expert for expert in self.experts])
        return (weights.unsqueeze(-1) * each).sum(0)


# %%
net, head = Slots(), nn.Linear(8, 1)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    x = torch.randn(6, 10, 8)
    loss = (head(net(x)).mean(1) - x.mean((1, 2)).unsqueeze(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
