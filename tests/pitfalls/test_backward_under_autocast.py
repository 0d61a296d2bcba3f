"""`backward()` inside and outside of autocast blocks."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 3)
"""
PENALTY = """
x.requires_grad_()
with torch.autocast("cpu", dtype=torch.bfloat16):
    slope, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    loss = (slope.norm(dim=1) - 1).pow(2).mean()
    loss.backward()
"""
DECORATED = """
@torch.autocast("cpu", dtype=torch.bfloat16)
def train_step(batch):
    opt.zero_grad()
    objective = net(batch).float().pow(2).mean()
    objective.backward()
    opt.step()
for _ in range(3):
    train_step(x)
"""


def findings(source):
    with a_notebook() as notebook:
        for cell in (SETUP, source):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        return [
            (f.line, f.subject, f.severity) for f in notebook.runs[-1].findings if f.slug == "backward-under-autocast"
        ]


FOUND = {
    "a penalty": (PENALTY, (6, "loss", "warning")),
    "a decorated step": (DECORATED, (6, "objective", "hint")),
    "no name": (
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    net(x).float().mean().backward()",
        (2, "loss", "hint"),
    ),
    "function of autograd": (
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    out = net(x).mean()\n    torch.autograd.backward(out)",
        (3, "out", "hint"),
    ),
}
QUIET = {
    "outside": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    loss = net(x).mean()\nloss.backward()",
    "off": "with torch.autocast('cpu', enabled=False):\n    net(x).mean().backward()",
    "another device": "with torch.autocast('cuda', enabled=False):\n    net(x).mean().backward()",
    "an inner block": (
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    loss = net(x).mean()\n"
        "    with torch.autocast('cpu', enabled=False):\n        loss.backward()"
    ),
    "in a function": (
        "def step():\n    with torch.autocast('cpu', dtype=torch.bfloat16):\n        loss = net(x).mean()\n"
        "    loss.backward()\nstep()"
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, place = FOUND[name]
    assert findings(source) == [place]


@pytest.mark.parametrize("name", QUIET)
@pytest.mark.filterwarnings("ignore")
def test_silent(name):
    assert findings(QUIET[name]) == []
