"""Batches that a loop cuts, without a loader, from data which lie class by class."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501, ISC004
START = """
import random
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(96, 4), torch.arange(2).repeat_interleave(48)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = "opt.zero_grad()\nloss = F.cross_entropy(net(xb), yb)\nloss.backward()\nopt.step()"
CUT = "for i in range(0, len(x), 16):\n    xb, yb = x[i:i + 16], y[i:i + 16]\n"


def indented(text):
    return "\n".join(f"    {line}" for line in text.split("\n"))


def found(*cells):
    return findings_in(START, *cells, slug="sorted-data-unshuffled", fails=False)


LOOPS = [
    f"{CUT}{indented(TRAIN)}",
    f"size = 16\nfor i in range(0, x.shape[0], size):\n    xb = x[i:i + size]\n    yb = y[i:i + size]\n{indented(TRAIN)}",
    "size = 16\nfor b in range(len(x) // size):\n    xb = x[b * size:(b + 1) * size]\n"
    f"    yb = y[b * size:(b + 1) * size]\n{indented(TRAIN)}",
    f"for xb, yb in zip(x.split(16), y.split(16)):\n{indented(TRAIN)}",
    f"for i in range(0, len(x), 16):\n    end = i + 16\n    yb, xb = y[i:end], x[i:end]\n{indented(TRAIN)}",
    "for i in range(0, len(x), 16):\n    opt.zero_grad()\n    F.cross_entropy(net(x[i:i + 16]), y[i:i + 16]).backward()\n"
    "    opt.step()",
    f"def epoch(x, y, size=16):\n{indented(CUT + indented(TRAIN))}\nepoch(x, y)",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_batches_of_one_class(loop):
    (finding,) = found(f"for _ in range(3):\n{indented(loop)}")
    assert finding.subject == "y"
    assert "48 of class 0, then 48 of class 1" in finding.message
    assert finding.fix.startswith("order = torch.randperm(len(y))\nx, y = x[order], y[order]")


def test_what_mends_it():
    (finding,) = found(f"for _ in range(3):\n{indented(LOOPS[0])}")
    assert found(f"for _ in range(3):\n{indented(finding.fix)}\n{indented(LOOPS[0])}") == []


@pytest.mark.parametrize(
    "cell",
    [
        # Classes that are mixed, by chance or by an order that is drawn in each epoch.
        f"y = torch.randint(0, 2, (96,))\n{LOOPS[0]}",
        f"order = torch.randperm(96)\nx, y = x[order], y[order]\n{LOOPS[0]}",
        f"for _ in range(3):\n    order = torch.randperm(96)\n    x, y = x[order], y[order]\n{indented(LOOPS[0])}\n"
        "back = y.argsort()\nx, y = x[back], y[back]",
        f"order = torch.randperm(96)\n{LOOPS[0].replace('x[i:i + 16], y[i:i + 16]', 'x[order[i:i + 16]], y[order[i:i + 16]]')}",
        f"starts = list(range(0, 96, 16))\nrandom.shuffle(starts)\n{LOOPS[0].replace('range(0, len(x), 16)', 'starts')}",
        f"def epoch(x, y):\n{indented(LOOPS[0])}\norder = torch.randperm(96)\nepoch(x[order], y[order])",
        # Steps of all batches together, none, or under a condition that a sorted part does not meet.
        f"{CUT}    F.cross_entropy(net(xb), yb).backward()\nopt.step()",
        f"with torch.no_grad():\n{indented(CUT)}    right = (net(xb).argmax(1) == yb).sum()",
        f"def epoch(x, y, train):\n{indented(CUT)}    if train:\n{indented(indented(indented(TRAIN)))}\n"
        "order = torch.randperm(96)\nepoch(x[order], y[order], True)\nepoch(x, y, False)",
        # Numbers that are not classes: each comes once, or too few of each, or inputs in order.
        f"y = torch.arange(96) % 96\nnet, opt = nn.Linear(4, 96), opt\n{LOOPS[0]}",
        "ids, z = torch.arange(2).repeat_interleave(48), torch.randn(96)\nscale = nn.Embedding(2, 1)\n"
        "rate = torch.optim.SGD(scale.parameters(), lr=0.1)\nfor i in range(0, 96, 16):\n    rate.zero_grad()\n"
        "    F.mse_loss(scale(ids[i:i + 16])[:, 0], z[i:i + 16]).backward()\n    rate.step()",
    ],
)
def test_batches_that_are_not_of_one_class(cell):
    assert found(cell) == []
