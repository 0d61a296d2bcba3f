"""Leaves that were to be changed while autograd recorded."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import sys

import pytest

from tests.cells import findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(3, 2)
"""
FOUND = {
    "update by hand": (["def update(module):\n    for p in module.parameters():\n        p -= 0.1 * p", "update(net)"], 3, "p", "p -= 0.1 * p"),
    "element": (["net.weight[0, 0] = 3.0"], 1, "net.weight", "(2, 3)"),
    "method": (["x = torch.ones(3, requires_grad=True)\nx.clamp_(0, 0.5)"], 2, "x", "`x`"),
    "view": (["row = net.weight[0]\nrow += 1"], 2, "row", "a view of"),
    "in a class": (["class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = nn.Parameter(torch.ones(3))\n        self.scale.mul_(2)\n\n\nNet()"], 5, "self.scale", "self.scale"),
    "of another": (["def relu(values):\n    return F.relu(values, inplace=True)", "w = torch.rand(3, requires_grad=True)\nrelu(w)"], 2, "values", "`w`"),
}  # fmt: skip
SILENT = {
    "no_grad": "with torch.no_grad():\n    for p in net.parameters():\n        p -= 0.1",
    "data": "net.weight.data.fill_(1.0)",
    "init": "nn.init.zeros_(net.bias)",
    "result": "y = net(torch.rand(2, 3))\ny += 1\ny.sum().backward()",
    "caught": "try:\n    net.weight += 1\nexcept RuntimeError:\n    pass",
    "gradient": "net(torch.rand(2, 3)).sum().backward()\nnet.weight.grad.mul_(2)",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "inplace-on-leaf"], everything


@pytest.mark.parametrize("name", FOUND)
def test_found_with_names(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,), everything = found(cells)
    assert (finding.line, finding.subject) == (line, subject)
    assert mentions in finding.message
    assert [one.slug for one in everything if one.severity == "error" and one is not finding] == []


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]])[0] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tracebacks of Python 3.10 have lines only")
def test_the_statement_of_several_in_one_line():
    (finding,), _ = found(["p = torch.ones(3); p.requires_grad_(); p += 1"])
    assert finding.message.startswith("`p += 1` changes `p` in place")
