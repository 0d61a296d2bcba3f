"""BatchNorm without statistics of its own."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(64, 4)
def make(**options):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, **options), nn.Linear(8, 1))
net = make(track_running_stats=False)
def fit(model):
    opt = torch.optim.SGD(model.parameters(), lr=.01)
    for part in x.split(32):
        opt.zero_grad()
        model(part).pow(2).mean().backward()
        opt.step()
@torch.no_grad()
def predict(model, data):
    model.eval()
    return model(data)
"""
FOUND = {
    "fewer": (["fit(net)", "p = predict(net, x[:3])"], (18, "warning")),
    "one": (["fit(net)", "p = predict(net, x[:1])"], (18, "error")),
    "untrained, one": (["p = net.eval()(x[:1])"], (1, "error")),
    "one by one": (["fit(net)\np = [predict(net, row) for row in x.split(2)]"], (18, "warning")),
}
QUIET = {
    "as many": ["fit(net)", "p = predict(net, x)"],
    "not trained": ["p = predict(net, x[:3])"],
    "train mode": ["fit(net)\nwith torch.no_grad():\n    p = net(x)"],
    "with statistics": ["net = make()\nfit(net)\np = predict(net, x[:1])"],
    "instance norm": ["net = nn.Sequential(nn.InstanceNorm1d(4), nn.Flatten(0))\np = predict(net, x[None])"],
    "layer norm": ["net = nn.Sequential(nn.LayerNorm(4))\nfit(net)\np = predict(net, x[:1])"],
}


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="batchnorm-no-running-stats")]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == [expected]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []
