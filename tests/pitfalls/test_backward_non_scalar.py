"""What is differentiated has several numbers."""

import pytest

from tests.cells import a_notebook

START = """
import torch
from torch import nn

net, x, y = nn.Linear(3, 1), torch.rand(8, 3), torch.rand(8, 1)
"""
FOUND = {
    "no reduction": (["loss = nn.BCEWithLogitsLoss(reduction='none')(net(x), y)\nloss.backward()"], "loss", "(8, 1)"),
    "by hand": (["(net(x) - y).pow(2).backward()"], "", "(8, 1)"),
    "in a function": (
        ["def step():\n    error = (net(x) - y).abs()\n    error.backward()", "step()"],
        "error",
        "8 elements",
    ),
    "grad": (["out = net(x)\ntorch.autograd.grad(out, net.weight)"], "out", "(8, 1)"),
    "two losses": (["a, b = net(x).mean(), net(x)\ntorch.autograd.backward([a, b])"], "b", "(8, 1)"),
}
SILENT = {
    "mean": "(net(x) - y).pow(2).mean().backward()",
    "weights": "net(x).backward(torch.ones(8, 1))",
    "one element": "net(x[:1]).backward()",
    "caught": "try:\n    net(x).backward()\nexcept RuntimeError:\n    net(x).sum().backward()",
    "own error": "raise RuntimeError('only scalar outputs here')",
}


def found(cells):
    with a_notebook() as notebook:
        for source in (START, *cells):
            run = notebook.run(source)
        return list(run.findings)


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, subject, mentions = FOUND[name]
    (finding,) = found(cells)
    assert (finding.slug, finding.subject) == ("backward-non-scalar", subject)
    assert mentions in finding.message


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]]) == []


def test_an_expression_keeps_its_parentheses_before_the_mean():
    (finding,) = found(["out = net(x)\n(out - y).backward()"])
    assert finding.fix == "(out - y).mean().backward()  # or .sum()"
