"""BatchNorm over few samples, in many steps."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(256, 8), torch.randn(256, 1)
def make(norm=None):
    return nn.Sequential(nn.Linear(8, 16), norm or nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
def fit(model, size, count=64):
    opt = torch.optim.SGD(model.parameters(), lr=.01)
    for _, a, b in zip(range(count), x.split(size), y.split(size)):
        opt.zero_grad()
        nn.functional.mse_loss(model(a), b).backward()
        opt.step()
net = make()
"""
IMAGES = """
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 1))
x, y = torch.randn(160, 1, 8, 8), torch.randn(160, 1)
fit(net, 4)
"""
FOUND = {"two": "fit(net, 2)", "four": "fit(net, 4)", "seven": "fit(net, 7)"}
QUIET = {
    "enough": "fit(net, 16)\nfit(net, 8, count=20)",
    "a few steps": "fit(net, 4, count=8)",
    "layer norm": "fit(make(nn.LayerNorm(16)), 4)",
    "images": IMAGES,
    "asleep": "net[1].eval()\nfit(net, 4)",
    "only answers": "net.eval()\nfor part in x.split(2):\n    p = net(part).detach()",
}


def found(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None]
        return [(line, sev) for _, slug, line, sev in notebook.findings() if slug == "batchnorm-small-batch"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert found(FOUND[name]) == [(12, "hint")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name]) == []
