"""Mixed modes that an evaluation makes one of."""

import pytest

from tests.cells import findings_in

SETUP = """
import contextlib
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
net = nn.Sequential(body, nn.Dropout(.2), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=.05)
def epoch():
    for i in range(0, 64, 32):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[i:i + 32]), y[i:i + 32]).backward()
        opt.step()
@contextlib.contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)
def evaluate():
    net.eval()
    with torch.no_grad():
        score = net(x).mean().item()
    net.train()
    return score
def freeze():
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.eval()
"""
FOUND = {
    "a context manager": (
        ["body.eval()\nfor _ in range(2):\n    epoch()\n    with evaluating(net):\n        net(x)"],
        23,
    ),
    "a function": (["freeze()\nfor _ in range(3):\n    epoch()\n    evaluate()"], 28),
    "over cells": (["freeze()\nepoch()", "evaluate()\nepoch()"], 28),
    "inline": (["freeze()\nepoch()", "net.eval()\np = net(x)\nnet.train()\nepoch()"], 3),
}
QUIET = {
    "one mode": ["for _ in range(2):\n    epoch()\n    with evaluating(net):\n        net(x)"],
    "frozen again": ["for _ in range(3):\n    net.train()\n    freeze()\n    epoch()\n    evaluate()"],
    "frozen after": ["freeze()\nfor _ in range(3):\n    epoch()\n    evaluate()\n    freeze()"],
    "woken by name": ["freeze()\nepoch()\nevaluate()\nbody.train()\nepoch()"],
    "unfrozen later": [
        "for e in range(4):\n    net.train()\n    if e < 2:\n        freeze()\n    epoch()\n    net.eval()\n    net(x)"
    ],
    "only evaluated": ["freeze()\nevaluate()\np = net(x)"],
    "unfrozen on purpose, no evaluation": ["freeze()\nepoch()\nnet.train()\nepoch()"],
}


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="mode-restore-flattens", fails=False)]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, line = FOUND[name]
    assert found(*cells) == [(line, "warning")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []
