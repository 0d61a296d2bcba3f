"""The axis that a softmax without `dim` is told: the one that the text shows to be meant, or those that it may be."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn
import warnings
warnings.simplefilter("ignore")
torch.manual_seed(0)
att, out, y = nn.Linear(8, 1), nn.Linear(8, 2), torch.zeros(12).long()
h, hs = torch.randn(12, 5, 8), torch.randn(5, 12, 8)"""
SLUG, OVER = "implicit-softmax-dim", "softmax-over-batch"


def found(cell, slug=SLUG):
    return findings_in(SETUP, cell, slug=slug, fails=False)


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        # Steps first: what torch takes is right.
        (
            "w = F.softmax(att(hs))\nF.cross_entropy(out((w * hs).sum(0)), y).backward()",
            "w = F.softmax(att(hs), dim=0)",
        ),
        (
            "with torch.no_grad():\n    w = F.softmax(att(h))\n    p = (w * h).sum(dim=1)",
            "w = F.softmax(att(h), dim=1)",
        ),
        (
            "with torch.no_grad():\n    w = F.softmax(att(h))\n    p = torch.sum(h * w, 1)",
            "w = F.softmax(att(h), dim=1)",
        ),
        ("with torch.no_grad():\n    w = F.softmax(att(h))", "# F.softmax(att(h), dim=1) for the steps"),
        ("w = F.softmax(torch.randn(2, 3, 4, 4))", "# F.softmax(torch.randn(2, 3, 4, 4), dim=-1) for classes"),
        ("w = F.softmax(torch.randn(2, 3))", "w = F.softmax(torch.randn(2, 3), dim=-1)"),
        ("sm = nn.Softmax()", "# nn.Softmax(dim=-1) for classes in the last axis; dim=1 for"),
        ("m = nn.Sequential(nn.Linear(8, 3), nn.Softmax())", "nn.Softmax(dim=-1)"),
        ("m = nn.Sequential(nn.Linear(8, 1), nn.Softmax())", "# nn.Softmax(dim=-1) for"),
    ],
)
def test_the_axis_of_the_fix(cell, fix):
    (finding,) = found(cell)
    assert finding.fix.startswith(fix), finding.fix


LOSS = "F.cross_entropy(out((w * h).sum(1)), y).backward()"
MODULE = """\
class A(nn.Module):
    def __init__(s):
        super().__init__()
        s.sm = nn.Softmax()
    def forward(s, h):
        w = s.sm(att(h))
        return out((w * h).sum(1))
net = A()
F.cross_entropy(net(h), y).backward()"""


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (f"sm = nn.Softmax()\nw = sm(att(h))\n{LOSS}", 1),
        (MODULE, 9),
        (f"v = F.softmax(torch.randn(4, 3, 3))\nw = F.softmax(att(h))\n{LOSS}", 2),
    ],
)
def test_one_softmax_is_told_once(cell, line):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        told = [(one.slug, one.line) for one in notebook.run(cell).findings]
    assert (OVER, line) in told
    assert sum(slug == OVER for slug, _ in told) == 1
    assert (SLUG, line) not in told
