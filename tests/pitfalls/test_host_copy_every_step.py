"""Constants that are moved in each step; `meta` stands in for an accelerator."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
device = "meta"
net = nn.Linear(4, 3, device=device)
x = torch.randn(16, 4, device=device)
opt = torch.optim.SGD(net.parameters(), lr=.1)
classes = 3
"""
LOOP = """
for step in range({steps}):
    {made}
    opt.zero_grad()
    loss = (net(x) * w).mean()
    loss.backward()
    opt.step()
"""
FUNCTION = """
def fit(epochs):
    for epoch in range(epochs):
        for _ in range(4):
            w = torch.tensor([1.0, 2.0, 3.0]).to(device)
            opt.zero_grad()
            (net(x) * w).mean().backward()
            opt.step()
fit(4)
"""


def loop(made, steps=12):
    return LOOP.format(made=made, steps=steps)


FOUND = {
    "a range": (loop("w = torch.linspace(0, 1, 3).to(device)"), 3),
    "ones of a size": (loop("w = torch.ones(classes).to(device)"), 3),
    "inside an expression": (loop("w = 2 * torch.ones(3).to(device=device)"), 3),
    "in a function": (FUNCTION, 5),
}
QUIET = {
    "before": "w = torch.ones(3).to(device)\n" + loop("pass"),
    "made there": loop("w = torch.ones(3, device=device)"),
    "depends on the step": loop("w = torch.full((3,), step / 10).to(device)"),
    "something new": loop("w = torch.tensor(list(range(3))).to(device)"),
    "a batch": loop("w = torch.randn(3).to(device)"),
    "a few": loop("w = torch.ones(3).to(device)", steps=3),
    "on the host": SETUP.replace("meta", "cpu") + loop("w = torch.ones(3).to(device)"),
}


def found(cell):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(cell)
        assert notebook.errors == [None, None], notebook.errors
        return [(line, sev) for _, slug, line, sev in notebook.findings() if slug == "host-copy-every-step"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cell, line = FOUND[name]
    assert found(cell) == [(line, "hint")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name]) == []
