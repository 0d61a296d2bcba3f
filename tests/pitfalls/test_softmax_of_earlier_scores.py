"""A softmax along the samples, of scores that an earlier cell made, whose classes are read along the other axis."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(20, 6)
with torch.no_grad():
    logits = net(x)
q = torch.randn(20, 4)
logits2 = net(x).detach()"""


def found(cell):
    return findings_in(SETUP, cell, slug="softmax-over-batch", fails=False)


@pytest.mark.parametrize("made", ["F.softmax(logits, dim=0)", "logits2.softmax(0)", "nn.Softmax(dim=0)(logits)"])
@pytest.mark.parametrize(
    "read", ["c, p = probs.max(1)", "p = probs.argmax(dim=1)", "p = torch.max(probs, 1)", "p = probs.topk(2, dim=1)"]
)
def test_classes_are_read_along_the_other_axis(made, read):
    (finding,) = found(f"probs = {made}\n{read}")
    assert "`probs` runs along dim 0, the 20 samples" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "probs = F.softmax(logits, dim=1)\np = probs.argmax(1)",
        "probs = F.softmax(logits, dim=0)\np = probs.argmax(0)",
        "probs = F.softmax(logits[0], dim=0)\np = probs.argmax()",
        "weights = F.softmax(logits, dim=0)\npooled = weights.T @ q",
        "probs = F.softmax(q @ q.T, dim=0)\np = probs.argmax(1)",
        "probs = nn.Softmax(dim=1)(logits)\np = probs.max(1)",
    ],
)
def test_other_axes_and_other_scores(cell):
    assert found(cell) == []
