"""Softmax over the samples inside a model, seen where a prediction reads classes from what it gives; no loss is there."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501
START = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(48, 4), torch.randint(0, 3, (48,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.soft = nn.Linear(4, 3), LAYER
    def forward(self, x):
        return RESULT
"""


def found(made, cell, layer="nn.Identity()", result="self.line(x)"):
    start = START.replace("LAYER", layer).replace("RESULT", result)
    return findings_in(start, f"net = {made}.eval()", cell, slug="softmax-over-batch", fails=False)


ROW = "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=0))"
LOOP = (
    "right = 0\nwith torch.no_grad():\n    for xb, yb in zip(x.split(16), y.split(16)):\n        p = net(xb)\n"
    "        right += (p.argmax(dim=1) == yb).sum().item()"
)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ((ROW, "with torch.no_grad():\n    p = net(x)\nprint(p.argmax(1))"), "net[3].dim = -1"),
        ((ROW, "with torch.no_grad():\n    right = (net(x).argmax(1) == y).float().mean()"), "net[3].dim = -1"),
        ((ROW.replace("Softmax", "LogSoftmax"), "with torch.no_grad():\n    p = net(x).exp()\nprint(p.max(1))"), "net[3].dim = -1"),
        (("Net()", "with torch.no_grad():\n    p = net(x)\nprint(torch.argmax(p, dim=-1))", "nn.Softmax(dim=0)", "self.soft(self.line(x))"),
         "net.soft.dim = -1"),
        (("Net()", LOOP, "nn.Identity()", "F.softmax(self.line(x), dim=0)"), "F.softmax(self.line(x), dim=-1)"),
        (("Net()", LOOP, "nn.Identity()", "self.line(x).softmax(0)"), "self.line(x).softmax(-1)"),
    ],
)  # fmt: skip
def test_classes_read_from_shares_of_the_batch(arguments, fix):
    (finding,) = found(*arguments)
    assert finding.subject == "net"
    assert "runs along dim 0" in finding.message
    assert fix in finding.fix
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "arguments",
    [
        (ROW.replace("dim=0", "dim=1"), "p = net(x)\nprint(p.argmax(1))"),
        # One sample; the best sample of each class; weights of a set; numbers that sum to nothing.
        (ROW, "p = net(x[0])\nprint(p.argmax())"),
        (ROW, "p = net(x)\nprint(p.argmax(0))"),
        (ROW, "w = net(x)\nprint((w.unsqueeze(2) * x.unsqueeze(1)).sum(0).argmax(1))"),
        ("Net()", "p = net(x)\nprint(p.argmax(1))"),
        ("Net()", "p = net(x)\nprint(p.argmax(1))", "nn.Sigmoid()", "self.soft(self.line(x))"),
        # Both, as of an assignment that is balanced.
        (
            "Net()",
            "p = net(x[:3])\nprint(p.argmax(1))",
            "nn.Identity()",
            "torch.full((3, 3), 1 / 3) + 0 * self.line(x)",
        ),
        # As many samples as classes: each may be the classes, as of texts and images.
        (ROW, "p = net(x[:3])\nprint(p.argmax(1))"),
    ],
)
def test_outputs_that_are_read_right(arguments):
    assert found(*arguments) == []
