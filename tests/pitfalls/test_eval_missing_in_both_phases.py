"""A function for training and for validation that sets train mode for both; each phase in a cell of its own."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def run(phase, x):
    {mode}
    if phase == "train":
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        return
    with torch.no_grad():
        return net(x).square().mean().item()
def awake():
    net.train()"""
CELLS = ["for _ in range(4):\n    run('train', torch.randn(16, 6))", "print(run('valid', torch.randn(16, 6)))"]


@pytest.mark.parametrize(
    ("mode", "cells", "told"),
    [
        ("net.train()", CELLS, [14]),
        ("net.train(phase == 'train')", CELLS, []),
        ("net.train()", CELLS[1:], []),  # nobody has trained it
        ("awake()", CELLS, []),  # the mode is chosen elsewhere
    ],
)
def test_validation_in_train_mode(mode, cells, told):
    found = findings_in(SETUP.format(mode=mode), *cells, slug="eval-missing", fails=False)
    assert [one.line for one in found] == told
