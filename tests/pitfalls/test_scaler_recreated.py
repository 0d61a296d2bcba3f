"""Scalers made again and again, and scalers that are made anew with good reason."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def update(scaler, optimizer, model):
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(4, 3)).pow(2).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def findings(*cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert all(error is None for error in notebook.errors)
        return [(f.line, f.subject) for run in notebook.runs for f in run.findings if f.slug == "scaler-recreated"]


TRAINER = """
class Trainer:
    def __init__(self):
        self.optimizer = opt
    def epoch(self):
        self.scaler = torch.amp.GradScaler("cpu")
        for i in range(2):
            update(self.scaler, self.optimizer, net)
trainer = Trainer()
for e in range(3):
    trainer.epoch()
"""
FOUND = {
    "in a loop": (
        "for e in range(3):\n    s = torch.amp.GradScaler('cpu')\n    for i in range(2):\n        update(s, opt, net)",
        (2, "scaler"),
    ),
    "every step": ("for e in range(3):\n    update(torch.amp.GradScaler('cpu'), opt, net)", (2, "scaler")),
    "a trainer": (TRAINER, (6, "scaler")),
}
QUIET = {
    "once": "s = torch.amp.GradScaler('cpu')\nfor e in range(3):\n    update(s, opt, net)",
    "with the optimizer": (
        "for e in range(3):\n    m = nn.Linear(3, 1)\n    o = torch.optim.SGD(m.parameters(), 0.1)\n"
        "    s = torch.amp.GradScaler('cpu')\n    update(s, o, m)"
    ),
    "off": "for e in range(3):\n    update(torch.amp.GradScaler('cpu', enabled=False), opt, net)",
    "handed on": (
        "state = torch.amp.GradScaler('cpu').state_dict()\nfor e in range(3):\n    s = torch.amp.GradScaler('cpu')\n"
        "    s.load_state_dict(state)\n    update(s, opt, net)\n    state = s.state_dict()"
    ),
    "one each for two": (
        "o2 = torch.optim.SGD(net.parameters(), 0.1)\nfor o in (opt, o2):\n"
        "    s = torch.amp.GradScaler('cpu')\n    update(s, o, net)"
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


def test_silent_for_a_cell_that_is_run_again():
    again = "s = torch.amp.GradScaler('cpu')\nupdate(s, opt, net)"
    assert findings(again, again, again) == []
