"""Accumulated means over parts of unequal size, and parts that are equal or weighted."""

import pytest

from tests.cells import findings_in

SLUG = "accumulation-uneven-mean"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.rand(70, 4), torch.rand(70, 1)
labels = (y > 0.5).long().squeeze(1)
net, scores = nn.Linear(4, 1), nn.Linear(4, 2)
opt = torch.optim.SGD([*net.parameters(), *scores.parameters()], lr=0.1)
data = TensorDataset(x, y)"""
PARTS = """\
for _ in range(3):
    opt.zero_grad()
    for a, b in zip({parts}):
        {loss}
        loss.backward()
    opt.step()"""
LOADER = """\
loader = DataLoader(data, {options})
for epoch in range(2):
    for i, (a, b) in enumerate(loader):
        loss = F.mse_loss(net(a), b) / {window}
        loss.backward()
        if (i + 1) % {window} == 0 or i + 1 == len(loader):
            opt.step()
            opt.zero_grad()"""
MSE = "loss = F.mse_loss(net(a), b)"


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        (PARTS.format(parts="x.split(32), y.split(32)", loss=MSE), 5, "6 to 32 rows"),
        (PARTS.format(parts="x.split([40, 30]), y.split([40, 30])", loss=MSE + " / 2"), 5, "30 to 40 rows"),
        (
            PARTS.format(parts="x.split([60, 10]), labels.split([60, 10])",
                         loss="loss = F.cross_entropy(scores(a), b)"),
            5,
            "6.0 times",
        ),
        (PARTS.format(parts="x.split(40), y.split(40)", loss="loss = (net(a) - b).pow(2).mean()"), 5, "30 to 40"),
        (LOADER.format(options="batch_size=16", window=5), 5, "6 to 16 rows"),
        (("def train(loader):\n    opt.zero_grad()\n    for a, b in loader:\n"
          "        F.mse_loss(net(a), b).backward()\n    opt.step()\n"
          "loader = DataLoader(data, batch_size=20)\ntrain(loader)"), 4, "10 to 20 rows"),
    ],
)  # fmt: skip
def test_parts_of_unequal_size(code, line, words):
    (finding,) = found(code)
    assert (finding.line, finding.severity) == (line, "hint")
    assert words in finding.message


@pytest.mark.parametrize(
    "code",
    [
        PARTS.format(parts="x.split(35), y.split(35)", loss=MSE),
        PARTS.format(parts="x.split([36, 34]), y.split([36, 34])", loss=MSE),
        PARTS.format(parts="x.split(32), y.split(32)", loss=MSE + " * len(a) / 70"),
        PARTS.format(parts="x.split(32), y.split(32)", loss="loss = F.mse_loss(net(a), b, reduction='sum') / 70"),
        PARTS.format(parts="x.split(32), y.split(32)", loss="loss = ((net(a) - b) ** 2).sum() / len(x)"),
        LOADER.format(options="batch_size=16, drop_last=True", window=4),
        LOADER.format(options="batch_size=16", window=2),
        LOADER.format(options="batch_size=14", window=5),
        (
            "for epoch in range(2):\n    for a, b in DataLoader(data, batch_size=16):\n        opt.zero_grad()\n"
            "        F.mse_loss(net(a), b).backward()\n        opt.step()"
        ),
        (
            "for _ in range(3):\n    opt.zero_grad()\n"
            "    for loss in (F.mse_loss(net(x), y), F.cross_entropy(scores(x[:9]), labels[:9])):\n"
            "        loss.backward()\n    opt.step()"
        ),
    ],
)
def test_parts_that_count_right(code):
    assert found(code) == []
