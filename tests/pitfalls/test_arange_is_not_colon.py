"""One pick per row that became a table, copies of one column, and selections of columns."""

import pytest

from tests.cells import findings_in

SLUG = "arange-is-not-colon"
START = """\
import torch
from torch import nn
torch.manual_seed(0)
scores, labels = torch.randn(16, 5), torch.randint(0, 5, (16,))
hidden, lengths = torch.randn(8, 20, 3), torch.randint(1, 20, (8,))
q, big = torch.randn(12, 30), torch.randn(600, 2, 500)
net = nn.Linear(5, 5)"""


def found(*cells):
    return findings_in(START, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("loss = -torch.log_softmax(scores, 1)\nloss = scores[:, labels].mean()", 2, "(16, 16)"),
        ("last = hidden[:, lengths - 1]", 1, "(8, 8, 3)"),
        ("best = q.argmax(1)\nvalue = q[:, best].sum()", 2, "(12, 12)"),
        ("def nll(p, t):\n    return -p[:, t].mean()\nnll(scores, labels)", 2, "`t`"),
        ("actions = torch.randint(0, 30, (12,))\nq_taken = q[:, actions]", 2, "actions"),
        ("one = big[torch.arange(600), 1]", 1, "copies one column"),
    ],
)
def test_selections_that_differ(code, line, words):
    (finding,) = found(code)
    assert (finding.line, finding.severity) == (line, "hint")
    assert words in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "picked = scores[torch.arange(16), labels]",
        "columns = torch.tensor([0, 3])\npart = scores[:, columns]",
        "order = torch.randperm(30)\nmixed = q[:, order]",
        "some = torch.randperm(30)[:12]\npart = q[:, some]",
        "square = torch.randn(5, 5)\nlabels = torch.randint(0, 5, (5,))\ntable = square[:, labels]",
        "first = scores[torch.arange(16), 0]",
        "half = scores[:, :2]; column = scores[:, 1]; row = scores[3, labels[:4]]",
        "mask = torch.tensor([True, False, True, True, False])\npart = scores[:, mask]",
        "names = {(1, 2): 3}\nnames[1, 2]\ntable = [[1, 2]]",
        "scores[:, labels[:3]] = 0",
        "best = hidden[torch.arange(8), lengths - 1]\nrest = hidden[:, 1:]",
    ],
)
def test_selections_that_are_meant(code):
    assert found(code) == []
