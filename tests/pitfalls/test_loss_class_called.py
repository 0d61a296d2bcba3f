"""Classes of losses that are given tensors; the fix is pasted and runs."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
out, target = torch.randn(8, 3, requires_grad=True), torch.randint(0, 3, (8,))"""


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("loss = nn.CrossEntropyLoss(out, target)", "loss = nn.CrossEntropyLoss()(out, target)"),
        ("loss = 2 * nn.MSELoss(out, out * 2)", "loss = 2 * nn.MSELoss()(out, out * 2)"),
    ],
)
def test_the_fix_builds_and_calls(cell, fix):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(cell).findings if one.slug == "loss-class-called"]
        assert (finding.line, finding.fix) == (1, fix)
        assert notebook.run(finding.fix).error is None


@pytest.mark.parametrize(
    "cell", ["if out > 0:\n    pass", "bool(out)", "def f(a, b):\n    return not a\nf(out, target)"]
)
def test_other_conditions(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        assert not [one for one in notebook.run(cell).findings if one.slug == "loss-class-called"]
