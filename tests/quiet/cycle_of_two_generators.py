"""Two generators in one optimizer by itertools.chain, two discriminators that rest while these learn.
Tempts: parameters-missing-from-optimizer, nothing-to-train, frozen parts switched by requires_grad."""

# %%
import itertools

import torch
from torch import nn

torch.manual_seed(48)
to_b, to_a = nn.Linear(4, 4), nn.Linear(4, 4)
judge_a, judge_b = nn.Linear(4, 1), nn.Linear(4, 1)
makers = torch.optim.Adam(itertools.chain(to_a.parameters(), to_b.parameters()), lr=1e-3)
judges = torch.optim.Adam(itertools.chain(judge_a.parameters(), judge_b.parameters()), lr=1e-3)


def set_requires_grad(nets, wanted):
    for net in nets:
        for p in net.parameters():
            p.requires_grad = wanted


# %%
for step in range(6):
    a, b = torch.randn(16, 4), torch.randn(16, 4) + 1
    set_requires_grad([judge_a, judge_b], False)
    makers.zero_grad()
    fake_b, fake_a = to_b(a), to_a(b)
    cycle = (to_a(fake_b) - a).abs().mean() + (to_b(fake_a) - b).abs().mean()
    adversarial = (judge_b(fake_b) - 1).pow(2).mean() + (judge_a(fake_a) - 1).pow(2).mean()
    (adversarial + 10 * cycle).backward()
    makers.step()
    set_requires_grad([judge_a, judge_b], True)
    judges.zero_grad()
    for judge, real, fake in ((judge_a, a, fake_a), (judge_b, b, fake_b)):
        loss = 0.5 * ((judge(real) - 1).pow(2).mean() + judge(fake.detach()).pow(2).mean())
        loss.backward()
    judges.step()
print(cycle.item())
