"""Fixes that convert a value can be pasted before the line that needs them, and then there is nothing to find."""

import pytest

from tests.cells import a_notebook
from torch_inspector.facts import assigned

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, single = nn.Linear(4, 3), nn.Linear(4, 1)
x = torch.randn(6, 4)
conv = nn.Conv2d(3, 2, 1)
y = torch.arange(6) % 3
share = y / 3"""
CELLS = [
    "target = y.float()\nF.cross_entropy(net(x), target).backward()",
    "target = y.int()\nF.cross_entropy(net(x), target).backward()",
    "batch = {'y': y.to(torch.int16)}\nF.cross_entropy(net(x), batch['y']).backward()",
    "mask = torch.randint(0, 2, (2, 1, 5, 5))\nF.cross_entropy(conv(torch.rand(2, 3, 5, 5)), mask).backward()",
    "spam = y > 0\nspam = spam.long()\nF.binary_cross_entropy_with_logits(single(x)[:, 0], spam).backward()",
    "spam = y[:, None] / 3\nF.binary_cross_entropy_with_logits(single(x)[:, 0], spam).backward()",
    "batch = {'x': x.double()}\nseen = net(batch['x'])",
    "frames = torch.full((4, 3), 200, dtype=torch.uint8)\nn = 1\ngray = frames[:, 0] + frames[:, 1]",
    "p = net(x)\nseen = p.numpy()",
    "p = net(x)\nseen = p[:, 0].numpy()",
    "p = net(x)\nseen = p.sum().numpy() + 1",
    "import numpy as np\np = net(x)\nseen = np.asarray(p)",
    "p = net(x).detach()\nseen = p.mean(0).item()",
    "p = net(x).sum().detach()\nseen = p[0]",
    "p = net(x)\nprob = F.softmax(p)",
    "t = torch.rand(4, 3, 2)\nn, steps, size = t.shape\nturned = t.view(steps, n, size)",
]


@pytest.mark.parametrize("cell", CELLS)
def test_pasted_before_the_line_it_mends(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(cell).findings
        before, last = cell.rsplit("\n", 1)
        own = finding.fix.split("=")[0] == last.split("=")[0]
        after = notebook.run("\n".join([before, finding.fix, *([] if own else [last])]))
        assert (after.findings, after.error) == ((), None), finding.fix


def test_class_numbers_of_another_kind():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(CELLS[1]).findings
    assert finding.message.endswith(": class numbers must be int64.")


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("y", "y = y.long()"),
        ("batch['y']", "batch['y'] = batch['y'].long()"),
        ("batch[1]", "batch[1].long()  # in place of batch[1]"),
        ("batch.y", "batch.y.long()  # in place of batch.y"),
        ("a + b", "(a + b).long()  # in place of a + b"),
    ],
)
def test_what_cannot_be_assigned_is_told_where_it_goes(name, fix):
    assert assigned(name, "{}.long()") == fix
