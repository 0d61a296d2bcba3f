"""Predictions by `model.forward(x)`, which goes past `__call__`."""

import pytest

from tests.cells import a_notebook

MODEL = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(5, 20), nn.Dropout(0.5), nn.Linear(20, 2)
    def forward(self, x):
        return self.last(self.drop(torch.relu(self.first(x))))
net = Net()
optimizer = torch.optim.Adam(net.parameters())"""
TRAIN = """\
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net.forward(torch.randn(8, 5)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()"""
PREDICT = """\
with torch.no_grad():
    for _ in range(3):
        guess = net.forward(torch.randn(4, 5)).argmax(1)"""


def findings_of(*cells):
    with a_notebook() as notebook:
        return [notebook.run(cell).findings for cell in (MODEL, TRAIN, *cells)]


def test_found_at_the_line_that_asks():
    *before, (finding,) = findings_of(PREDICT)
    assert not any(before)
    assert (finding.slug, finding.subject, finding.line) == ("eval-missing", "net", 3)
    assert not any(one.unit == "count" for one in finding.evidence)  # a layer may run several times in one call


@pytest.mark.parametrize("cells", [("net.eval()", PREDICT), ("net.eval()\n" + PREDICT + "\nnet.train()",), (TRAIN,)])
def test_silent(cells):
    assert not any(findings_of(*cells))


def test_a_class_that_calls_forward_of_its_part_is_one_call():
    whole = "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.part = net\n"
    whole += "    def forward(self, x):\n        return self.part.forward(x)\nwhole = Whole()"
    *_, found = findings_of(whole, "with torch.no_grad():\n    guess = whole(torch.rand(2, 5))")
    assert [(one.slug, one.subject) for one in found] == [("eval-missing", "whole")]
