"""A trained network is grown: the wider one inherits weights, gets an optimizer of its own, the old one is kept.
Tempts: optimizer-of-another-model (the old optimizer is still alive beside the old network)."""

# %%
import torch
from torch import nn


def network(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 1))


def train(net, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


# %%
torch.manual_seed(55)
x = torch.randn(100, 5)
y = x.prod(1, keepdim=True).sign()
small = network(8)
small_optimizer = torch.optim.Adam(small.parameters(), lr=1e-2)
print(train(small, small_optimizer, 15))

# %%
wide = network(24)
with torch.no_grad():
    wide[0].weight[:8] = small[0].weight
    wide[0].bias[:8] = small[0].bias
    wide[2].weight[:, :8] = small[2].weight
    wide[2].weight[:, 8:] = 0
    wide[2].bias.copy_(small[2].bias)
    print(torch.allclose(wide(x), small(x), atol=1e-5))
wide_optimizer = torch.optim.Adam(wide.parameters(), lr=1e-2)
print(train(wide, wide_optimizer, 15))
