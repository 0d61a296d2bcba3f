"""Anomaly detection in later cells."""

import pytest
import torch

from tests.cells import a_notebook

SETUP = """
import torch, warnings
from torch import nn
warnings.simplefilter("ignore")
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=.01)
def step():
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
"""
ON = "torch.autograd.set_detect_anomaly(True);"
FOUND = {
    "next cell": ([ON, "step()"], 1),
    "told once": ([ON, "step()", "step()"], 1),
    "after a cell that does not train": ([ON, "1 + 1;", "step()"], 1),
    "its own cell trained too": ([ON + "\nstep()", "step()"], 1),
}
QUIET = {
    "own cell": [ON + "\nstep()"],
    "as a context": ["with torch.autograd.detect_anomaly():\n    step()", "step()"],
    "switched off": [ON, "torch.autograd.set_detect_anomaly(False)\nstep()"],
    "no training": [ON, "with torch.no_grad():\n    y = net(torch.randn(2, 4))"],
    "never on": ["step()"],
}


def found(*cells):
    try:
        with a_notebook() as notebook:
            for source in (SETUP, *cells):
                notebook.run(source)
            assert all(error is None for error in notebook.errors), notebook.errors
            return [sev for _, slug, _, sev in notebook.findings() if slug == "anomaly-mode-left-on"]
    finally:
        torch.autograd.set_detect_anomaly(False)


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, count = FOUND[name]
    assert found(*cells) == ["hint"] * count


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []
