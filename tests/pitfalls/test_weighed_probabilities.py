"""Probabilities that `nll_loss` picks to weigh them sample by sample, as an estimate of what a policy earns does."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
policy = nn.Linear(4, 3)
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
x, action = torch.randn(16, 4), torch.randint(0, 3, (16,))
reward, propensity, mask = torch.rand(16), torch.rand(16) + 0.2, torch.ones(16)
unreduced = nn.NLLLoss(reduction="none")
"""
STEPS = """
for _ in range(2):
    pi = F.softmax(policy(x), dim=1)
    picked = F.nll_loss(pi, action, reduction="none")
    loss = {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("loss", "severity"),
    [
        ('(F.nll_loss(pi, action, reduction="none") * reward / propensity).mean()', "hint"),
        ("(picked * (reward / propensity)).mean()", "hint"),
        ("torch.mul(reward, unreduced(pi, action)).mean()", "hint"),
        ("picked.mean()", "error"),
        ("(0.5 * picked).sum() / len(x)", "error"),
        ("(picked * mask).sum() / mask.sum()", "error"),
    ],
)
def test_the_picked_are_weighed_by_a_tensor(loss, severity):
    (one,) = findings_in(SETUP, STEPS.format(loss), slug="probabilities-in-nll-loss")
    assert one.severity == severity
