"""Conversions that nobody kept, told by the cell that fails for it."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
x = torch.rand(4, 6, dtype=torch.float64)
layer, scores = nn.Linear(6, 2), torch.rand(4, 6)
"""
MASKED = """
def hide(scores, mask):
    mask.bool()
    scores = scores * 2
    return scores.masked_fill(mask, 0.0)
"""
LAYER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 2)

    def forward(self, x):
        x.float()
        return self.lin(x)

net = Net()
"""


def found(*cells):
    with a_notebook() as notebook:
        for code in (SETUP, *cells):
            run = notebook.run(code)
        return notebook.errors[-1], [one for one in run.findings if one.slug == "to-result-discarded"]


@pytest.mark.parametrize(
    ("cells", "subject", "line", "cell"),
    [
        ([MASKED, "hide(scores, (scores > 0.5).float())"], "mask", 3, 2),
        ([LAYER, "net(x)"], "x", 8, 2),
        ([MASKED + "hide(scores, (scores > 0.5).float())"], "mask", 3, 2),
        (["picks = torch.tensor([0.0, 1.0])\npicks.long()\nprint(scores[picks])"], "picks", 2, 2),
    ],
    ids=["function", "module", "same cell", "index"],
)
def test_the_line_is_named(cells, subject, line, cell):
    error, (finding,) = found(*cells)
    assert error is not None
    assert (finding.subject, finding.line) == (subject, line)
    assert finding.cell in (cell, None)
    assert "is still float" in finding.message
    assert finding.fix.startswith(f"{subject} = {subject}.")


CONVERTED = """
emb = nn.Embedding(5, 2)
def use(x, w):
    x.{}()
    return {}
"""


@pytest.mark.parametrize(
    ("method", "used", "given"),
    [
        ("long", "emb(x)", "torch.ones(2)"),
        ("int", "w[x]", "torch.ones(2)"),
        ("float", "x.mean()", "torch.arange(4)"),
        ("float", "w @ x", "torch.ones(6).double()"),
        ("double", "w.double() @ x", "torch.ones(6)"),
        ("bool", "~x", "torch.ones(2)"),
        ("float", "layer(x)", "torch.ones(6).long()"),
    ],
)
def test_the_type_that_the_error_asks_for(method, used, given):
    error, (finding,) = found(CONVERTED.format(method, used), f"use({given}, scores)")
    assert error is not None
    assert f"where line {finding.line + 1} needs it" in finding.message


@pytest.mark.parametrize(
    ("method", "used", "given"),
    [
        ("double", "emb(x)", "torch.ones(2)"),
        ("half", "w[x]", "torch.ones(2)"),
        ("half", "w.double() @ x", "torch.ones(6)"),
        ("to('meta'); x.bfloat16", "emb(x)", "torch.ones(2)"),
        ("double", "~x", "torch.ones(2)"),
    ],
)
def test_another_type_than_the_error_asks_for(method, used, given):
    error, findings = found(CONVERTED.format(method, used), f"use({given}, scores)")
    assert error is not None
    assert not findings


@pytest.mark.parametrize(
    "cells",
    [
        [MASKED, "hide(scores, scores > 0.5)"],
        [MASKED.replace("mask.bool()", "mask = mask.bool()"), "hide(scores, (scores > 0.5).float())"],
        [MASKED.replace("    scores = scores * 2", "    mask = mask.float()"), "hide(scores, scores > 0.5)"],
        [LAYER, "net(torch.rand(4, 5))"],
        [MASKED, "layer(x)"],
    ],
    ids=["bool", "kept", "made anew", "shape", "elsewhere"],
)
def test_silent(cells):
    assert found(*cells)[1] == []
