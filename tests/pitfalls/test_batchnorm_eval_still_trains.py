"""BatchNorm layers in eval mode, with weights that are trained and without."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randn(64, 1)
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
def fit(parameters):
    opt = torch.optim.SGD(parameters, lr=.01)
    for _ in range(3):
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
"""
FOUND = {
    "a comment": ["# freeze the batch norm\nnet[1].eval()\nfit(net.parameters())"],
    "asked": ["%%torchcheck\nnet[1].eval()\nfit(net.parameters())"],
    "two cells": ["net.train()\nfrozen = net[1].eval()", "fit(net.parameters())"],
}
QUIET = {
    "nobody speaks of it": ["net[1].eval()\nfit(net.parameters())"],
    "both": ["# freeze\nnet[1].eval().requires_grad_(False)\nfit(net.parameters())"],
    "another part is trained": ["# freeze\nnet[1].eval()\nfit(net[3].parameters())"],
    "the whole asleep": ["# freeze\nnet.eval()\nfit(net.parameters())"],
    "awake": ["# freeze\nfit(net.parameters())"],
}


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        return [sev for _, slug, _, sev in notebook.findings() if slug == "batchnorm-eval-still-trains"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert found(*FOUND[name]) == ["hint"]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_layers_are_named_as_they_are_typed():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("# freeze\nnet[1].eval()\nfit(net.parameters())")
    (finding,) = [one for one in run.findings if one.slug == "batchnorm-eval-still-trains"]
    assert finding.message.startswith("1 BatchNorm1d in eval mode (`net[1]`) in `net`: its statistics rest, its weight")
    assert finding.fix == "net[1].requires_grad_(False)  # beside net[1].eval()"
