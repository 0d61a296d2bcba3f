"""A sign whose gradient a hook hands on, and one layer that an evolution of gradients trains by hand.
Tempts: graph-cut (`sign` and `round` between the parameters and the loss)."""

# %%
import torch
from torch import nn

torch.manual_seed(2)
data, target = torch.randn(40, 5), torch.randn(40, 2)


class Sign(nn.Module):
    def forward(self, x):
        return x.sign()


sign = Sign()
sign.register_full_backward_hook(lambda module, given, received: received)
net = nn.Sequential(nn.Linear(5, 8), sign, nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
before = net[0].weight.detach().clone()

# %%
for _ in range(5):
    optimizer.zero_grad()
    loss = (net(data) - target).square().mean()
    loss.backward()
    optimizer.step()
assert not torch.equal(before, net[0].weight)
