"""A sigmoid before a loss with logits: what to do depends on whether its probabilities are used elsewhere too."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 1), nn.Sigmoid())
x, mask = torch.randn(8, 5), torch.randint(0, 2, (8, 1)).float()
crit = nn.BCEWithLogitsLoss()"""
DICE = "1 - 2 * (p * mask).sum() / (p.sum() + mask.sum())"


def fix_of(given, other):
    cell = f"p = {given}\nloss = crit(p, mask) + {other}\nloss.backward()"
    (finding,) = findings_in(SETUP, cell, slug="sigmoid-before-bce-logits", fails=False)
    return finding.fix


@pytest.mark.parametrize("given", ["net(x)", "net(x).clamp(0.01, 0.99)", "torch.sigmoid(net[0](x))"])
def test_probabilities_that_a_dice_loss_needs_stay(given):
    assert fix_of(given, DICE).startswith("nn.BCELoss()")


@pytest.mark.parametrize("other", ["0", "net[0].weight.square().sum()"])
def test_probabilities_of_one_loss_only(other):
    assert "nn.Identity()" in fix_of("net(x)", other)
    assert "raw scores" in fix_of("torch.sigmoid(net[0](x))", other)
