"""Layers that refuse an input of another size."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import re

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "layer-input-mismatch"
START = """
import torch
from torch import nn
torch.manual_seed(0)
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
        self.fc1 = nn.Linear(100, 7, bias=False)
    def forward(self, x):
        x = torch.flatten(self.body(x), 1)
        return self.fc1(x)
net = Net()
"""
# Cells before, the failing cell, what the message says, the fix; where it is a statement, it is run and the cell too.
FOUND = {
    "of a class": (NET, "net(torch.rand(2, 3, 8, 8))", "`net.fc1` (Linear) takes 100", "self.fc1 = nn.Linear(256, 7, bias=False)  # in Net.__init__"),
    "of a sequence": ("m = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\nx = torch.rand(2, 3, 32, 32)", "m(x)", "`m[1]`", "m[1] = nn.Linear(3072, 10)"),
    "inside a class": (NET, "net(torch.rand(2, 2, 5, 5))", "`net.body[0]` (Conv2d) takes 3 channels", "net.body[0] = nn.Conv2d(2, 4, 3, padding=1)"),
    "not flattened": ("fc, x = nn.Linear(784, 10), torch.rand(2, 1, 28, 28)", "fc(x)", "`x` of shape (2, 1, 28, 28)", "x = x.flatten(1)"),
    "channels last": ("c, x = nn.Conv2d(3, 4, 3), torch.rand(2, 9, 9, 3)", "c(x)", "`c` (Conv2d) takes 3 channels", "x = x.movedim(-1, 1)"),
    "one picture, channels last": ("c, x = nn.Conv2d(3, 4, 3), torch.rand(9, 9, 3)", "c(x)", "9", "x = x.movedim(-1, 0)"),
    "sequence first": ("c, x = nn.Conv1d(5, 4, 3), torch.rand(2, 9, 5)", "c(x)", "`c` (Conv1d)", "x = x.movedim(-1, 1)"),
    "no channel": ("c, x = nn.Conv2d(1, 4, 3), torch.rand(16, 28, 28)", "c(x)", "16", "x = x.unsqueeze(1)"),
    "gray": ("c, x = nn.Conv2d(3, 4, 3), torch.rand(2, 1, 28, 28)", "c(x)", "1", "x = x.expand(-1, 3, -1, -1)"),
    "transparent": ("c, x = nn.Conv2d(3, 4, 3), torch.rand(2, 4, 28, 28)", "c(x)", "4", "x = x[:, :3]"),
    "rows as pictures": ("c, x = nn.Conv2d(1, 4, 3), torch.rand(2, 784)", "c(x)", "4 axes", "x = x.reshape(-1, 1, 28, 28)"),
    "recurrent": ("r, x = nn.LSTM(8, 16, batch_first=True), torch.rand(2, 5, 10)", "r(x)", "takes 8", "r = nn.LSTM(10, 16, batch_first=True)"),
    "norm of features": ("n, x = nn.LayerNorm(16), torch.rand(2, 16, 8)", "n(x)", "takes 16", "x = x.movedim(1, -1)"),
    "norm of channels": ("n, x = nn.BatchNorm2d(16), torch.rand(2, 8, 4, 4)", "n(x)", "takes 16 channels", "n = nn.BatchNorm2d(8)"),
    "norm of other axes": ("n, x = nn.BatchNorm2d(16), torch.rand(2, 16)", "n(x)", "2 axes", "n = nn.BatchNorm1d(16)"),
    "row of a table": ("e, t = nn.Embedding(10, 4), torch.tensor([[1, 10]])", "e(t)", "from 0 to 9, and `t` asks for row 10", "e = nn.Embedding(11, 4)"),
    "row below zero": ("e, t = nn.Embedding(10, 4), torch.tensor([[1, -1]])", "e(t)", "asks for row -1", "t = t.clamp(min=0)"),
    "attention": ("a, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.rand(2, 5, 12)", "a(x, x, x)", "`a` (MultiheadAttention) takes 16 features", "a = nn.MultiheadAttention(12, 4, batch_first=True)"),
    "subclass": ("class Head(nn.Linear):\n    pass\nh, x = Head(4, 2), torch.rand(3, 5)", "h(x)", "`h` (Head) takes 4", "h = Head(5, 2)"),
    "subclass, not flattened": ("class Head(nn.Linear):\n    pass\nh, x = Head(4, 2), torch.rand(3, 1, 2, 2)", "h(x)", "`h` (Head) takes 4", "x = x.flatten(1)"),
}  # fmt: skip
QUIET = {
    "product by hand": "a, b = torch.rand(2, 3), torch.rand(4, 5)\na @ b",
    "own layer": "class Own(nn.Module):\n    def forward(self, x):\n        return x @ torch.rand(9, 2)\nOwn()(torch.rand(3, 4))",
    "target": "nn.CrossEntropyLoss()(torch.rand(3, 4), torch.tensor([0, 1, 4]))",
    "fits": "nn.Linear(4, 2)(torch.rand(3, 4));",
    "caught": "try:\n    nn.Linear(4, 2)(torch.rand(3, 5))\nexcept RuntimeError:\n    pass",
    "one value per channel": "nn.BatchNorm1d(4)(torch.rand(1, 4))",
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found_with_a_fix_that_works(name):
    before, cell, text, fix = FOUND[name]
    with a_notebook() as notebook:
        notebook.run(START + before)
        (finding,) = [one for one in notebook.run(cell).findings if one.slug == SLUG]
        assert text in finding.message
        assert finding.fix.startswith(fix)
        if not fix.startswith("self."):
            notebook.run(finding.fix)
            if "inside" not in name:
                notebook.run(cell)
            assert notebook.errors[2:] == [None] * len(notebook.errors[2:])


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(START, QUIET[name], slug=SLUG) == []


def test_a_class_of_a_library_is_not_to_be_edited():
    code = NET + "Net.__module__ = 'library'\nnet(torch.rand(2, 3, 8, 8))"
    (finding,) = findings_in(START, code, slug=SLUG)
    assert re.match(r"net\.fc1 = nn\.Linear\(256, 7, bias=False\)", finding.fix)


def test_the_attention_of_a_transformer_is_not_built_alone():
    (finding,) = findings_in(START, "m = nn.TransformerEncoderLayer(16, 4)\nm(torch.rand(2, 5, 12))", slug=SLUG)
    assert "`m.self_attn` (MultiheadAttention) takes 16 features" in finding.message
    assert finding.fix.startswith("d_model=12")


OWN = """class Wide(nn.Linear):
    def __init__(self, size):
        super().__init__(2 * size, 7)
class Plain(nn.Linear):
    def forward(self, x):
        return super().forward(x).relu()
class Norm(nn.BatchNorm2d):
    pass
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.plain = Wide(2), Plain(4, 7)
    def forward(self, x, kind):
        return getattr(self, kind)(x)
net, norm = Net(), Norm(16)
"""


@pytest.mark.parametrize(
    ("cell", "told", "fix"),
    [
        ("net(torch.rand(3, 5), 'plain')", "`net.plain` (Plain)", "self.plain = Plain(5, 7)  # in Net.__init__"),
        ("net(torch.rand(3, 5), 'wide')", "`net.wide` (Wide)", "in_features=5  # what `Wide` has to give nn.Linear"),
        ("x = torch.rand(3, 1, 5, 5)\nnet.wide(x)", "(Wide)", "x = x.flatten(1)  # and the layer with in_features=25"),
        ("norm(torch.rand(2, 16))", "`norm` (Norm)", "x.shape  # look at it"),
        ("norm(torch.rand(2, 8, 4, 4))", "`norm` (Norm)", "norm = Norm(8)"),
    ],
)
def test_a_class_that_inherits_from_a_layer_is_named_itself(cell, told, fix):
    (finding,) = findings_in(START, OWN, cell, slug=SLUG)
    assert told in finding.message
    assert finding.fix.startswith(fix)
    assert any(
        "Plain" in str(one.value) or "Wide" in str(one.value) or "Norm" in str(one.value) for one in finding.evidence
    )
