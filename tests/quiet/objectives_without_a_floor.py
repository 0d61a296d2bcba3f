"""Objectives that may fall for ever and are meant to: log-likelihoods, gaps between answers, preference margins.
Tempts: signed-sum-loss (differences are summed or averaged with their signs)."""

# %%
import torch
from torch import nn

torch.manual_seed(8)
tone = torch.randn(96, 5)
loud = tone[:, :1] * 2 + 0.1 * torch.randn(96, 1)
mean, spread = nn.Linear(5, 1), nn.Linear(5, 1)
optimizer = torch.optim.Adam([*mean.parameters(), *spread.parameters()], lr=0.02)
for _ in range(6):
    optimizer.zero_grad()
    normal = torch.distributions.Normal(mean(tone), nn.functional.softplus(spread(tone)) + 0.01)
    loss = -normal.log_prob(loud).mean()
    loss.backward()
    optimizer.step()

# %%
judge = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
judging = torch.optim.RMSprop(judge.parameters(), lr=0.01)
for turn in range(6):
    judging.zero_grad()
    distance = (judge(torch.randn(96, 5)) - judge(tone)).mean()
    distance.backward()
    judging.step()

# %%
policy = nn.Linear(5, 2)
reference = torch.log_softmax(policy(tone).detach(), 1)
acting = torch.optim.Adam(policy.parameters(), lr=0.02)
for turn in range(6):
    acting.zero_grad()
    chosen = torch.log_softmax(policy(tone), 1)
    gain = (chosen - reference)[:, 0]
    (-gain.mean() + 0.1 * (chosen.exp() * chosen).sum(1).mean()).backward()
    acting.step()
((mean(tone) - loud).mean()).item()
