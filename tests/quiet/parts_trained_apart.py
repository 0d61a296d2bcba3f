"""Layers listed for convenience and registered all the same, a shared block, and a scale that is moved by hand.
Tempts: modules-in-plain-list, same-module-repeated, parameters-missing-from-optimizer, discriminator-step-without-detach."""

# %%
import torch
from torch import nn


class Ladder(nn.Module):
    def __init__(self, width, rungs):
        super().__init__()
        self.first, self.last = nn.Linear(6, width), nn.Linear(width, 2)
        self.order = [self.first, nn.Tanh()]
        self.shared = nn.Linear(width, width)
        self.rungs = nn.ModuleList([self.shared] * rungs)

    def forward(self, x):
        for layer in self.order:
            x = layer(x)
        for rung in self.rungs:
            x = x + torch.tanh(rung(x))
        return self.last(x)


# %%
torch.manual_seed(90)
ladder, judge = Ladder(12, 3), nn.Linear(2, 1)
scale = nn.Parameter(torch.ones(1))
ladder_opt = torch.optim.Adam(ladder.parameters(), lr=1e-2)
judge_opt = torch.optim.Adam(judge.parameters(), lr=1e-2)


# %%
def turn(x):
    """The judge learns from what the ladder gives, and the ladder through the judge."""
    judge_opt.zero_grad()
    judge(ladder(x).detach()).mean().backward()
    judge_opt.step()
    ladder_opt.zero_grad()
    loss = (judge(ladder(x)) * scale).square().mean()
    loss.backward()
    ladder_opt.step()
    with torch.no_grad():
        scale.sub_(scale.grad, alpha=0.01)
    scale.grad = None
    return loss.item()


curve = [turn(torch.randn(16, 6)) for _ in range(8)]
