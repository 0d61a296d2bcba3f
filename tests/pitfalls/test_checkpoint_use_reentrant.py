"""Blocks that the old checkpoint cuts off, and those that it does not."""

import warnings

import pytest
import torch

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
torch.manual_seed(0)
stem, body, head = nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 16), nn.ReLU()), nn.Linear(16, 1)
data = torch.randn(4, 8)
wide = torch.randn(4, 16)
"""


def found(*cells):
    with a_notebook() as notebook, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in (SETUP, *cells):
            notebook.run(source)
        return [(line, sev) for _, slug, line, sev in notebook.findings() if slug == "checkpoint-use-reentrant"]


MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(8, 16), nn.Linear(16, 1)
    def forward(self, x):
        return self.head(checkpoint(self.stem, x))
net = Net()
"""
WRAPPER = """
def run(block, x, **options):
    return checkpoint(block, x, **options)
head(run(body, stem(data))).mean().backward()
"""
BOTH = """
head(checkpoint(body, stem(data), use_reentrant=True)).mean().backward()
with torch.no_grad():
    y = checkpoint(body, wide, use_reentrant=True)
"""
TEACHER = """
teacher = nn.Linear(8, 16).eval()
with torch.no_grad():
    goal = checkpoint(teacher, data, use_reentrant=True)
(stem(data) - goal).pow(2).mean().backward()
"""
FOUND = {
    "cut off": (["head(checkpoint(stem, data, use_reentrant=True)).mean().backward()"], 1, "warning"),
    "a method": (["h = checkpoint(stem.forward, data, use_reentrant=True)\nhead(h).mean().backward()"], 1, "warning"),
    "inside a model": ([MODEL, "net(data).mean().backward()"], 7, "warning"),
    "not told which": (["h = stem(data)\nhead(checkpoint(body, h)).mean().backward()"], 2, "hint"),
}
QUIET = {
    "new": ["head(checkpoint(stem, data, use_reentrant=False)).mean().backward()"],
    "old and fed": ["head(checkpoint(body, stem(data), use_reentrant=True)).mean().backward()"],
    "input made to want one": [
        "data.requires_grad_()\nhead(checkpoint(stem, data, use_reentrant=True)).mean().backward()"
    ],
    "frozen": [
        "stem.requires_grad_(False);\nhead(checkpoint(stem, data, use_reentrant=True)).mean().backward()",
    ],
    "no gradients wanted": [
        "with torch.no_grad():\n    y = checkpoint(stem, data, use_reentrant=True)",
    ],
    "trained without, shown with": [
        "head(stem(data)).mean().backward()\nwith torch.no_grad():\n    y = checkpoint(stem, data, use_reentrant=True)"
    ],
    "trained and shown with": [BOTH],
    "options passed on": [WRAPPER],
    "a function of the same name": ["def checkpoint(step):\n    return step\ncheckpoint(3);"],
    "a teacher": [TEACHER],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, line, severity = FOUND[name]
    assert found(*cells) == [(line, severity)]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_the_class_is_put_back():
    from torch.utils.checkpoint import CheckpointFunction

    before = CheckpointFunction.__dict__["forward"]
    with a_notebook() as notebook:
        notebook.run("1")
        assert CheckpointFunction.__dict__["forward"] is not before
    assert CheckpointFunction.__dict__["forward"] is before


def test_gradients_are_the_same():
    from torch.utils.checkpoint import checkpoint

    layer, data = torch.nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
    (plain,) = torch.autograd.grad(layer(data).sum(), [layer.weight])
    with a_notebook() as notebook:
        notebook.shell.user_ns.update(layer=layer, data=data, checkpoint=checkpoint)
        notebook.run("checkpoint(layer, data, use_reentrant=True).sum().backward()")
        assert notebook.errors == [None]
    assert layer.weight.grad is not None
    assert torch.equal(layer.weight.grad, plain)


LAYERS = """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True)
        return x
deep = Deep()
"""


def test_a_loop_over_layers_is_told_once_and_by_nothing_else():
    (finding,) = findings_in(SETUP, LAYERS, "deep(data).mean().backward()", fails=True)
    assert (finding.slug, finding.severity, finding.line) == ("graph-cut", "error", 8)
    assert "what 5 blocks (`Linear` first) gave has no history" in finding.message
    assert finding.fix == "x = checkpoint(layer, x, use_reentrant=False)"
    mended = LAYERS.replace("use_reentrant=True", "use_reentrant=False")
    assert not findings_in(SETUP, mended, "deep(data).mean().backward()", fails=False)
