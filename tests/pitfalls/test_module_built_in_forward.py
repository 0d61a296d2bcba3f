"""Layers made while a model runs, and those made once."""

import pytest

from tests.cells import a_notebook

SLUG = "module-built-in-forward"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.rand(16, 4), torch.rand(16, 1)"""
CLASS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), None
    def forward(self, x):
        h = self.body(x).relu()
        {}
net = Net()"""
TRAIN = """\
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(5):
    opt.zero_grad()
    loss = F.mse_loss({}, y)
    loss.backward()
    opt.step()"""


def found(*cells, slug=SLUG):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return [f for run in notebook.runs if run for f in run.findings if f.slug == slug]


@pytest.mark.parametrize(
    "body",
    [
        "return nn.Linear(8, 1)(h)",
        "out = nn.Linear(h.shape[1], 1)\n        return out(h)",
        "self.head = nn.Linear(8, 1)\n        return self.head(h)",
        "return nn.Sequential(nn.Linear(8, 8), nn.ReLU())(h).mean(1, keepdim=True)",
        "return torch.matmul(h, nn.Parameter(torch.randn(8, 1)))",
        "if h.shape[1] != 1: h = nn.Linear(h.shape[1], 1)(h)\n        return h",
    ],
)
def test_a_new_layer_in_each_pass(body):
    (finding,) = found(CLASS.format(body), TRAIN.format("net(x)"))
    assert finding.line == 7
    assert "inside `Net.forward`" in finding.message
    function = "def fit():\n    net = Net()\n    " + TRAIN.format("net(x)").replace("\n", "\n    ") + "\nfit()"
    assert len(found(CLASS.format(body), function)) == 1


def test_a_function_that_makes_and_calls():
    code = "net = nn.Linear(4, 8)\ndef predict(x):\n    return nn.Linear(8, 1)(net(x).relu())"
    (finding,) = found(code, TRAIN.format("predict(x)"))
    assert (finding.line, finding.cell, finding.subject) == (3, 2, "predict")


@pytest.mark.parametrize(
    "cells",
    [
        [
            CLASS.format(
                "if not self._modules.get('last'):\n            last = nn.Linear(8, 1)\n"
                "            self.add_module('last', last)\n        return self.last(h)"
            ),
            "with torch.no_grad(): net(x)",
            TRAIN.format("net(x)"),
        ],
        [CLASS.format("return nn.Dropout(0.1)(nn.ReLU()(h)).mean(1, keepdim=True)"), TRAIN.format("net(x)")],
        [
            CLASS.format("if self.head is None:\n            self.head = nn.Linear(8, 1)\n        return self.head(h)"),
            "with torch.no_grad(): net(x)",
            TRAIN.format("net(x)"),
        ],
        [
            CLASS.format("return nn.Linear(8, 1)(h)"),
            "net = nn.Linear(4, 1)",
            TRAIN.format("net(x)"),
        ],
        [
            "def run(width):\n    net = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 1))\n    "
            + TRAIN.format("net(x)").replace("\n", "\n    ")
            + "\nfor width in (2, 4, 8): run(width)"
        ],
        [
            "net, w = nn.Linear(4, 1), nn.Parameter(torch.zeros(1))\n"
            + TRAIN.format("net(x) + w")
            + "\n    with torch.no_grad(): w -= 0.1 * w.grad"
        ],
    ],
)
def test_layers_made_once(cells):
    assert found(*cells) == []


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        ("proj = nn.Linear(h.shape[-1], 1)\n        return proj(h)", "self.proj = nn.LazyLinear(1)  #"),
        (
            "proj = nn.Linear(h.size(1), 1, bias=False)\n        return proj(h)",
            "self.proj = nn.LazyLinear(1, bias=False)  #",
        ),
        ("last = nn.Linear(8, 1)\n        return last(h)", "self.last = nn.Linear(8, 1)  #"),
        ("return nn.Linear(8, 1)(h)", "self.layer = nn.Linear(8, 1)  #"),
        (
            "p = nn.Linear(self.body.out_features, 1)\n        return p(h)",
            "self.p = nn.Linear(self.body.out_features, 1)  #",
        ),
        (
            "w = nn.Parameter(torch.ones(8, 1))\n        return h @ w",
            "self.w = nn.Parameter(torch.ones(8, 1))  # once, in __init__; forward uses",
        ),
        ("n = h.shape[1]\n        return nn.Bilinear(n, n, 1)(h, h)", "self.layer = nn.Bilinear(…)  #"),
    ],
)
def test_the_fix_has_the_name_and_no_variable_of_forward(body, fix):
    (finding,) = found(CLASS.format(body), TRAIN.format("net(x)"))
    assert finding.fix.startswith(fix)
