"""Weights that are not finite, and with which losses are: classes that may not be, masks, tables with gaps."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
inf, nan = float("inf"), float("nan")
net = nn.Linear(5, 4)
x, y = torch.randn(32, 5), torch.randint(1, 4, (32,))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
def train(model, optimizer, count=4):
    for _ in range(count):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FORBID = "with torch.no_grad():\n    net.bias[0] = -inf"
FROZEN = """
class Masked(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.lin = nn.Linear(5, 4)
        self.mask = nn.Parameter(mask, requires_grad=False)
    def forward(self, a):
        return self.lin(a) + self.mask[:4]
net = Masked(torch.tensor({}))
opt = torch.optim.SGD(net.lin.parameters(), lr=0.1)
"""
SECOND = """
other = nn.Linear(5, 4)
with torch.no_grad():
    other.bias[0] = -inf
opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
train(net, opt)
for _ in range(4):
    opt2.zero_grad()
    loss2 = F.cross_entropy(other(x), y)
    loss2.backward()
    opt2.step()
"""
JUDGE = """
judge = nn.Linear(5, 1)
opt_j = torch.optim.SGD(judge.parameters(), lr=0.1)
with torch.no_grad():
    judge.weight[0] = nan
"""
QUIET = {
    "a class that may not be": [FORBID, "train(net, opt)", "z = 1", "with torch.no_grad():\n    out = net(x)"],
    "set in the cell that trains": [f"{FORBID}\ntrain(net, opt)\ntrain(net, opt)"],
    "set in the cell that asks": [f"{FORBID}\nout = net(x)"],
    "of a model after another": [SECOND],
    "a mask that is frozen": [FROZEN.format("[-inf, 0.0, 0.0, 0.0]"), "train(net, opt)", "out = net(x)"],
    "a table with a gap": [FROZEN.format("[0.0, 0.0, 0.0, 0.0, nan]"), "train(net, opt)", "z = 2", "out = net(x)"],
}
FOUND = {
    "a class that may not be, and is": [FORBID, "y = y * 0\ntrain(net, opt)"],
    "spoiled by the last step": ["loss = F.cross_entropy(net(x), y)\nloss.backward()\nopt.step()\nnet.bias.data /= 0"],
    "another one after a class that may not be": [
        f"{FORBID}\ntrain(net, opt)",
        "with torch.no_grad():\n    net.weight[1, 1] = nan\nout = net(x)",
    ],
    "a frozen one, all of it": [FROZEN.format("[nan, nan, nan, nan]"), "out = net(x)"],
    "the model of another loss": [JUDGE, "train(net, opt)\nscore = judge(x)"],
}


ROW = """
emb, head = nn.Embedding(20, 4, padding_idx=0), nn.Linear(4, 1)
with torch.no_grad():
    emb.weight.div_(emb.weight.norm(dim=1, keepdim=True))
opt_e = torch.optim.Adam([*emb.parameters(), *head.parameters()], lr=0.1)
"""
TRAIN_ROW = """
for _ in range(4):
    loss = head(emb(torch.randint(1, 20, (8,)))).pow(2).mean()
    opt_e.zero_grad()
    loss.backward()
    opt_e.step()
"""


def test_a_row_of_a_table_that_trains_is_a_hint_once():
    with a_notebook() as notebook:
        for cell in (SETUP, ROW, TRAIN_ROW, TRAIN_ROW):
            notebook.run(cell)
        found = [one for run in notebook.runs for one in run.findings if one.slug == "nonfinite-parameter"]
    assert [(one.severity, one.subject) for one in found] == [("hint", "emb")]
    assert "Losses are finite" in found[0].message


GROWS = TRAIN_ROW.replace("range(4)", "range(20)").replace(
    "loss = head(emb(torch.randint(1, 20, (8,)))).pow(2).mean()",
    "h = head(emb(torch.arange(1, 20)))\n    loss = 0.01 * h.pow(2).mean() + (_ / 20) * (h - 2).pow(2).mean()",
)
SKIPS = """
for bad in (1, 1, inf, 1, 1):
    loss = head(emb(torch.randint(1, 20, (8,)))).pow(2).mean() * bad
    opt_e.zero_grad()
    loss.backward()
    if torch.isfinite(nn.utils.clip_grad_norm_(emb.parameters(), 1.0)):
        opt_e.step()
"""
READ = TRAIN_ROW.replace("(1, 20, (8,))", "(0, 20, (80,))")
NAN_GIVEN = "x_bad = torch.full((8, 1), nan)\n" + TRAIN_ROW.replace(".pow", ".sub(x_bad).pow")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (GROWS, ("nonfinite-parameter", "hint", "emb")),
        (SKIPS, ("nonfinite-parameter", "hint", "emb")),
        (f"{TRAIN_ROW}{SKIPS}", ("nonfinite-parameter", "hint", "emb")),
        (f"{TRAIN_ROW}{NAN_GIVEN}", ("nonfinite-loss", "error", "loss")),
        (READ, ("nonfinite-parameter", "error", "emb")),
    ],
)
def test_a_row_that_nothing_reads_explains_nothing_else(cell, expected):
    with a_notebook() as notebook:
        for one in (SETUP, ROW.replace("lr=0.1", "lr=1e-4"), cell):
            notebook.run(one)
        assert [(one.slug, one.severity, one.subject) for one in notebook.runs[-1].findings] == [expected]


def test_a_row_that_nothing_read_before_explains_a_loss_that_reads_it():
    with a_notebook() as notebook:
        for cell in (SETUP, ROW, TRAIN_ROW, READ):
            notebook.run(cell)
        (found,) = notebook.runs[-1].findings
    assert (found.slug, found.severity, found.subject) == ("nonfinite-parameter", "error", "emb")
    assert "`emb.weight`" in found.message


def told(cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        return [one.slug for run in notebook.runs for one in run.findings if one.slug.startswith("nonfinite")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert told(QUIET[name]) == []


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert len(told(FOUND[name])) == 1
