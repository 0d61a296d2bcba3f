"""What stays in full precision is told in a cell that asks, and nowhere else."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_cell, a_run, a_witness
from torch_inspector.pitfalls.memory.amp_is_not_half_memory import check

MB = 1 << 20
ASKED = a_cell(wants_report=True)
SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
x = torch.randn(32, 512)
"""
AUTOCAST = """%%torchcheck
with torch.autocast("cpu", torch.bfloat16):
    loss = model(x).pow(2).mean()
loss.backward()
"""


def a_mixed(**changes):
    given = {"saved_nbytes": 6 * MB, "half_nbytes": 5 * MB, "leaf_nbytes": 8 * MB} | changes
    return a_backward(witness=a_witness(**given))


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [(line, severity) for _, slug, line, severity in notebook.findings() if slug.startswith("amp")]


def test_told_once_with_the_bytes():
    (finding,) = check(a_run(a_mixed(), a_mixed(), cell=ASKED))
    assert (finding.line, finding.subject) == (3, "loss")
    assert all(text in finding.message for text in ("5.00 MB", "6.00 MB", "8.00 MB"))


@pytest.mark.parametrize(
    "run",
    [
        a_run(a_mixed()),
        a_run(a_mixed(half_nbytes=0), cell=ASKED),
        a_run(a_mixed(saved_nbytes=40 * MB, half_nbytes=40 * MB), cell=ASKED),
        a_run(a_mixed(), cell=ASKED, min_nbytes=64 * MB),
        a_run(a_backward(witness=None), cell=ASKED),
    ],
    ids=["nobody asks", "full precision", "mostly layer outputs", "small", "not looked at"],
)
def test_silent_otherwise(run):
    assert list(check(run)) == []


def test_autocast_in_a_notebook():
    assert found(AUTOCAST) == [(4, "hint")]


@pytest.mark.parametrize(
    "cells",
    [
        (AUTOCAST.removeprefix("%%torchcheck\n"),),
        ("%%torchcheck\nloss = model(x).pow(2).mean()\nloss.backward()",),
        ("model.to(torch.bfloat16)", "%%torchcheck\nloss = model(x.bfloat16()).pow(2).mean()\nloss.backward()"),
        (AUTOCAST.replace("model(x)", "model(x.repeat(512, 1))"),),
        (AUTOCAST.replace("loss.backward()", "print(loss.item())"),),
    ],
    ids=["not asked", "no autocast", "a model in bfloat16", "a large batch", "no backward"],
)
def test_other_cells(cells):
    assert found(*cells) == []
