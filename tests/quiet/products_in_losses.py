"""Weighted losses, policies and hazards whose factors fit, and products of all pairs that are meant.
Tempts: loss-broadcast (a column times a row under a mean)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x, label, weight = torch.randn(16, 6), torch.randint(0, 16, (16,)), torch.rand(16)
net, pick, rate = nn.Linear(6, 1), nn.Linear(6, 16), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*net.parameters(), *pick.parameters(), *rate.parameters()], lr=1e-3)


def step(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# %%
policy = torch.distributions.Normal(net(x), torch.ones(1))
action = policy.sample()
gain = -(action - x[:, :1]).pow(2)
step(-(policy.log_prob(action) * (gain - gain.mean())).mean())
step((F.cross_entropy(pick(x), label, reduction="none") * weight).sum() / weight.sum())

# %%
class_weight = torch.rand(16)
step(-(F.log_softmax(pick(x), 1) * F.one_hot(label, 16) * class_weight).sum())
step((pick(x).softmax(1) * torch.arange(16.0)).sum(1).mean())

# %%
risk, time, event = net(x).squeeze(1), torch.rand(16), torch.randint(0, 2, (16,)).float()
at_risk = (time[None] >= time[:, None]).float()
step(-((risk - (risk.exp() * at_risk).sum(1).log()) * event).mean())

# %%
friends = (torch.rand(16, 16) > 0.5).float()
step((net(x) * net(x).T - friends).pow(2).mean())
hours = torch.linspace(0, 1, 16)
step(((-F.softplus(rate(x)) * hours).exp() - friends).pow(2).mean())
step((F.softplus(rate(x)) * hours).mean())

# %%
scores = net(x.view(4, 4, 6)).softmax(1)  # as many steps as samples
mask = torch.rand(4, 4) > 0.2
pooled = (scores * mask[..., None] * x.view(4, 4, 6)).sum(1)
step(pooled.pow(2).mean())
