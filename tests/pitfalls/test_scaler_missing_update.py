"""What a scaler says when its calls do not follow each other, in the user's names."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_run, an_error
from torch_inspector.pitfalls.training.scaler_missing_update import check

SETUP = """
import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
amp = torch.amp.GradScaler("cpu")
def backward():
    opt.zero_grad()
    amp.scale(net(torch.ones(4, 3)).pow(2).mean()).backward()
"""


def findings(source):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        return [f for f in run.findings if f.slug == "scaler-missing-update"]


FOUND = {
    "no update": ("for i in range(2):\n    backward()\n    amp.step(opt)", 3, "`amp.step(opt)` ran again"),
    "unscaled twice": ("backward()\namp.unscale_(opt)\nx = 1\namp.unscale_(opt)", 4, "ran twice"),
    "unscaled late": ("backward()\namp.step(opt)\namp.unscale_(opt)", 3, "ran after `amp.step(opt)`"),
    "nothing to update": (
        "amp.scale(torch.ones(1))\namp.update()",
        2,
        "`amp.update()` ran although",
    ),
    "no gradient": ("opt.zero_grad()\namp.scale(torch.ones(1))\namp.step(opt)", 3, "found no gradient"),
    "in a method": (
        (
            "class T:\n    def __init__(self):\n        self.s, self.o = amp, opt\n    def go(self):\n"
            "        backward()\n        self.s.step(self.o)\nt = T()\nt.go()\nt.go()"
        ),
        6,
        "`self.s.step(self.o)` ran again",
    ),
}
QUIET = {
    "right": "for i in range(3):\n    backward()\n    amp.unscale_(opt)\n    amp.step(opt)\n    amp.update()",
    "one step": "backward()\namp.step(opt)",
    "off": "s = torch.amp.GradScaler('cpu', enabled=False)\nfor i in range(3):\n    backward()\n    s.step(opt)",
    "another error": "raise RuntimeError('step() was called')",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    source, line, text = FOUND[name]
    (finding,) = findings(source)
    assert finding.line == line
    assert text in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(QUIET[name]) == []


def test_names_are_general_where_the_line_is_not_known():
    (finding,) = check(a_run(error=an_error("step() has already been called since the last update().", line=None)))
    assert finding.subject == "scaler"
