"""Mean teacher: its answers without gradients and with dropout awake are part of each step.
Tempts: eval-missing, data-attribute, optimizer-of-another-model."""

# %%

import torch
from torch import nn

torch.manual_seed(80)


def net():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


s, t = net(), net()
t.load_state_dict(s.state_dict())
for p in t.parameters():
    p.detach_()
opt = torch.optim.SGD(s.parameters(), 0.1)

# %%

for it in range(5):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    o = s(x)
    with torch.no_grad():
        e = t(x + 0.1 * torch.randn_like(x))
    loss = nn.functional.cross_entropy(o, y) + nn.functional.mse_loss(o.softmax(1), e.softmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    a = min(1 - 1 / (it + 1), 0.99)
    for pe, ps in zip(t.parameters(), s.parameters()):
        pe.data.mul_(a).add_(ps.data, alpha=1 - a)
