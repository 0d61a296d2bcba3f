"""Accumulation of losses that divide a sum by the number of samples, as `batchmean` does."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(5, 3)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(96, 5), torch.rand(96, 3).softmax(1)"""
LOOP = """\
for i, (a, b) in enumerate(zip(x.split({size}), y.split({size}))):
    loss = {loss}
    loss.backward()
    if (i + 1) % 4 == 0:
        sgd.step()
        sgd.zero_grad()"""
KL = 'F.kl_div(net(a).log_softmax(1), b, reduction="batchmean")'
CASES = {
    "batchmean": (8, KL, True),
    "a sum by hand": (8, "(net(a) - b).pow(2).sum() / len(a)", True),
    "divided": (8, f"{KL} / 4", False),
    "a sum for each step": (8, "(net(a) - b).pow(2).sum() / len(x)", False),
    "as many samples as batches": (4, "(net(a) - b).pow(2).sum() / 4", False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mean_over_samples_is_a_mean(case):
    size, loss, told = CASES[case]
    found = findings_in(SETUP, LOOP.format(size=size, loss=loss), slug="accumulation-unscaled", fails=False)
    assert [one.fix for one in found] == ["(loss / 4).backward()"] * told
