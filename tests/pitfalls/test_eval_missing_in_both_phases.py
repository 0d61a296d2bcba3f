"""A function for training and for validation that sets train mode for both; each phase in a cell of its own."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def run(phase, x):
    {mode}
    if phase == "train":
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        return
    with torch.no_grad():
        return net(x).square().mean().item()
def awake():
    net.train()"""
CELLS = ["for _ in range(4):\n    run('train', torch.randn(16, 6))", "print(run('valid', torch.randn(16, 6)))"]


@pytest.mark.parametrize(
    ("mode", "cells", "told"),
    [
        ("net.train()", CELLS, [14]),
        ("net.train(phase == 'train')", CELLS, []),
        ("net.train()", CELLS[1:], []),  # nobody has trained it
        ("awake()", CELLS, []),  # the mode is chosen elsewhere
    ],
)
def test_validation_in_train_mode(mode, cells, told):
    found = findings_in(SETUP.format(mode=mode), *cells, slug="eval-missing", fails=False)
    assert [one.line for one in found] == told


BOTH = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(2, (64,))
net = nn.Sequential(nn.Linear(6, 8), nn.LAYER, nn.Linear(8, 2))
class Trainer:
    def __init__(self, model):
        self.model, self.opt, self.seen = model, torch.optim.SGD(model.parameters(), lr=0.1), []
    def go(self, learn=True, n=1):
        self.model.train()
        outs = []
        for _ in range(n):
            with torch.set_grad_enabled(learn):
                out = self.model(x)
            outs.append(out.detach())
            if learn:
                self.opt.zero_grad()
                nn.functional.cross_entropy(out, y).backward()
                self.opt.step()
        KEEP
        return torch.stack(outs)
t = Trainer(net)"""
TRAIN = "for _ in range(4): t.go()"
NORM, DROPOUT = BOTH.replace("LAYER", "BatchNorm1d(8)"), BOTH.replace("LAYER", "Dropout(0.3)")


@pytest.mark.parametrize(
    ("setup", "cell", "severity"),
    [
        (NORM, "for _ in range(3): t.go(learn=False)\nt.model.eval();", ""),  # the statistics settle
        (NORM, "_ = t.go(learn=False)", ""),
        (NORM, "t.go(learn=False)", "hint"),
        (NORM, "scores = t.go(learn=False)[0]", "warning"),
        (NORM, "print(t.go(learn=False)[0])", "warning"),
        (NORM.replace("KEEP", "self.seen.append(out)"), "t.go(learn=False);", "warning"),
        (NORM.replace("KEEP", "print(len(outs))"), "t.go(learn=False);", "warning"),
        (DROPOUT, "s = t.go(learn=False, n=20)\nmean, std = s.mean(0), s.std(0)", ""),
        (DROPOUT, "s = torch.stack([t.go(learn=False) for _ in range(20)]).std(0)", ""),
        (DROPOUT, "s = t.go(learn=False)", "warning"),
        (DROPOUT, "t.go(learn=False)", "warning"),
    ],
)
def test_a_function_for_both_is_asked_on_purpose_where_nobody_gets_its_result(setup, cell, severity):
    found = findings_in(setup.replace("KEEP", ""), TRAIN, cell, slug="eval-missing", fails=False)
    assert [one.severity for one in found] == ([severity] if severity else [])


ASKED = """\
def ask(x=x):
    net.train()
    {made}
    with torch.set_grad_enabled(not net.done):
        out = net({given})
    if not net.done:
        out.square().mean().backward()
        opt.step()
    return out.detach()
net.done = False
for _ in range(3): ask()
net.done = True"""


@pytest.mark.parametrize(
    ("made", "given", "cell", "told"),
    [
        ("pass", "x", "s = [ask() for _ in range(9)]", False),
        ("pass", "x", "s = [ask(x) for _ in range(9)]", False),
        ("pass", "x", "s = [ask(b) for b in torch.randn(9, 4, 6)]", True),
        ("pass", "x", "s = []\nfor b in torch.randn(9, 4, 6): s.append(ask(x=b))", True),
        ("pass", "net.rows", "s = []\nfor net.rows in torch.randn(9, 4, 6): s.append(ask())", True),
        ("x = torch.randn(4, 6)", "x", "s = [ask() for _ in range(9)]", True),
        ("pass", "torch.randn(4, 6)", "s = [ask() for _ in range(9)]", True),
    ],
)
def test_a_function_that_makes_no_input_samples_in_a_loop(made, given, cell, told):
    setup = SETUP.partition("def run")[0] + "x = net.rows = torch.randn(16, 6)"
    found = findings_in(setup, ASKED.format(made=made, given=given), cell, slug="eval-missing", fails=False)
    assert bool(found) is told


def test_statistics_may_settle_in_the_cell_that_trained():
    cell = f"{TRAIN}\nfor _ in range(3): t.go(learn=False)\nt.model.eval();"
    assert findings_in(NORM.replace("KEEP", ""), cell, slug="eval-missing", fails=False) == []
