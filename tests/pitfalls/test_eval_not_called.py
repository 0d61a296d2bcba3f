"""Methods that are named and not called."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(16, 4)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
"""
FUNCTION = """
def predict(model, data):
    model.eval
    with torch.no_grad():
        return model(data)
answer = predict(net, x)
"""
TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model = model
    def score(self):
        self.model.eval
        with torch.no_grad():
            return self.model(x).mean()
score = Trainer(net).score()
"""


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="eval-not-called")]


FOUND = {
    "plain": (["net.eval\nwith torch.no_grad():\n    y = net(x)"], [(1, "error")]),
    "shown": (["net.eval"], [(1, "error")]),
    "train after eval": (["net.eval();", "net.train\ny = net(x)"], [(1, "error")]),
    "in a function": ([FUNCTION], [(3, "error")]),
    "in a trainer": ([TRAINER], [(6, "error")]),
    "in a loop": (["for epoch in range(2):\n    net.eval\n    y = net(x)"], [(2, "error")]),
    "in eval mode already": (["net.eval();", "net.eval\ny = net(x)"], [(1, "hint")]),
    "in a function that nobody calls": (["def f(m):\n    m.eval\n    return m"], [(2, "hint")]),
}
QUIET = {
    "called": ["net.eval()\ny = net(x)"],
    "handed on": ["import atexit\nf = net.eval\nf()"],
    "other attributes": ["net.training\nnet.children\nx.T"],
    "in a tuple": ["for f in (net.train, net.eval):\n    f()"],
    "an index": ["net[0].eval()\nnet.train(False);"],
    "tested": ["assert net.eval\nok = callable(net.train)"],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == expected


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_other_libraries_are_left_alone():
    with a_notebook() as notebook:
        notebook.run("class Frame:\n    eval = 1\nframe = Frame()\nframe.eval;")
        assert notebook.findings() == []


OWN = TRAINER.replace("score = Trainer(net).score()", "")


def test_a_method_of_an_earlier_cell_is_judged_when_it_has_run():
    first = "import torch\nfrom torch import nn\nx = torch.randn(16, 4)"
    made = "one = Trainer(nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2)))"
    found = findings_in(first, OWN, made, "one.score();", "one.score();", slug="eval-not-called")
    assert [(one.cell, one.line, one.severity) for one in found] == [(2, 6, "error")]


def test_a_method_of_an_earlier_cell_that_does_not_matter():
    first = "import torch\nfrom torch import nn\nx = torch.randn(16, 4)"
    made = "one = Trainer(nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2)).eval())"
    assert not findings_in(first, OWN, made, "one.score();", slug="eval-not-called")
