"""A softmax along the samples, outside of training, of scores whose classes a cross-entropy reads."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, body = nn.Sequential(nn.Linear(20, 12)), nn.Linear(20, 12)
x, y = torch.randn(16, 20), torch.randint(0, 12, (16,))"""
TOLD = "F.cross_entropy(net(x), y).backward()"
READS = [
    "with torch.no_grad():\n    p = F.softmax(net(x), dim={})",
    "k = []\nwith torch.no_grad():\n    for b in x.split(8):\n        p = net(b).softmax({})\n        k.extend(p)",
    "with torch.no_grad():\n    out = net(x)\n    p = torch.softmax(out, {})\nprint(p[0])",
    "@torch.no_grad()\ndef predict(x):\n    return nn.Softmax({})(net(x))\np = predict(x)",
]


def found(*cells):
    return findings_in(SETUP, *cells, slug="softmax-over-batch", fails=False)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("axis", [0, -2])
def test_scores_of_a_classifier(read, axis):
    (finding,) = found(TOLD, read.format(axis))
    assert finding.severity == "hint"
    assert "a cross-entropy reads the same model's scores as 12 classes along dim 1" in finding.message
    assert not found(TOLD, read.format(1))
    assert not found(read.format(axis))  # nobody knows which axis has the classes
    assert not found(TOLD.replace("net(x)", "body(x)"), read.format(axis))


@pytest.mark.parametrize(
    "read",
    [
        "p = F.softmax(net(x), dim=0)\nbest = p.argmax(0)",  # the best sample of each class
        "p = F.softmax(net(x), dim=0)\np = p / p.sum(1, keepdim=True)",
        "p, q = F.softmax(net(x), dim=0), F.softmax(net(x), dim=1)",
        "attention = F.softmax(net(x), dim=0)",
        "p = F.softmax(net(x[:12]), dim=0)",
        "p = F.softmax(net(x[0]), dim=0)",
        "p = F.softmax(net(x)[:, 3], dim=0)",
        "p = F.softmax(net(x).T, dim=0)",
    ],
)
def test_other_axes_of_a_classifier(read):
    assert not found(TOLD, f"with torch.no_grad():\n    {read.replace(chr(10), chr(10) + '    ')}")
