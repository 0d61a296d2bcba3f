"""Predictions that a loss of probabilities refuses; the fix is pasted and runs."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
out, wanted = 3 * torch.randn(8, 1, requires_grad=True), torch.randint(0, 2, (8, 1)).float()
criterion = nn.BCELoss()
gap = torch.full((8, 1), float("nan"))"""
CALLS = {
    "loss = criterion(out, wanted)": "criterion = torch.nn.BCEWithLogitsLoss()",
    "loss = F.binary_cross_entropy(out, wanted)": "loss = F.binary_cross_entropy_with_logits(out, wanted)",
    "loss = nn.BCELoss(reduction='sum')(out, wanted)": "loss = nn.BCEWithLogitsLoss(reduction='sum')(out, wanted)",
    "total = F.binary_cross_entropy(input=out, target=wanted).item()": (
        "total = F.binary_cross_entropy_with_logits(input=out, target=wanted).item()"
    ),
}


def told(notebook, cell):
    return [one for one in notebook.run(cell).findings if one.slug == "scores-in-binary-loss"]


@pytest.mark.parametrize("cell", CALLS)
def test_the_fix_takes_the_scores(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = told(notebook, cell)
        assert finding.subject == "out"
        assert "`out` goes from -" in finding.message
        assert finding.fix == f"{CALLS[cell]}  # takes the scores; no sigmoid before it"
        assert notebook.run(finding.fix).error is None
        assert notebook.run(cell if "criterion" in cell else "pass").error is None


def test_nan_is_said_to_be_nan():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = told(notebook, "criterion(gap, wanted)")
        assert finding.message.startswith("`gap` holds 8 nan among 8 values")
        assert "BCEWithLogits" not in finding.fix
        assert notebook.run(finding.fix).error is None


def test_in_a_function_of_an_earlier_cell():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run("def cost(scores, t):\n    return F.binary_cross_entropy(scores, t)")
        (finding,) = told(notebook, "cost(out, wanted)")
        assert (finding.subject, finding.line) == ("scores", 2)


@pytest.mark.parametrize(
    "cell", ["F.binary_cross_entropy(out.sigmoid(), wanted * 3)", "raise RuntimeError('between 0 and 1')"]
)
def test_other_refusals(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        assert told(notebook, cell) == []
