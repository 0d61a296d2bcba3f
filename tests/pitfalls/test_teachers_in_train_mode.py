"""Teachers of a distillation that answer with dropout, and models that are noisy on purpose."""

import pytest

from tests.cells import findings_in

SETUP = """
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader
torch.manual_seed(0)
def make(p):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(p), nn.Linear(16, 3))
teacher, student = make(0.4), make(0.1)
opt = torch.optim.Adam(student.parameters())
"""
LOOP = """
for _ in range(5):
    x = torch.randn(16, 6)
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    loss = nn.functional.kl_div(student(x).log_softmax(1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FUNCTION = """
def distill(teacher_net, student, opt):
    for _ in range(5):
        x = torch.randn(16, 6)
        with torch.no_grad():
            soft = teacher_net(x)
        loss = (student(x) - soft).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

distill(make(0.3), student, opt)
"""
PART = """
class Distilled(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.student, self.teacher = net, copy.deepcopy(net).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            t = self.teacher(x)
        return (self.student(x) - t).pow(2).mean()

both = Distilled(make(0.2))
own = torch.optim.SGD(both.student.parameters(), lr=0.1)
both.train()
for _ in range(5):
    own.zero_grad()
    both(torch.randn(16, 6)).backward()
    own.step()
"""


@pytest.mark.parametrize(
    ("cells", "subject"),
    [([LOOP], "teacher"), ([FUNCTION], "teacher_net"), ([PART], "both.teacher")],
    ids=["variable", "function", "part"],
)
def test_it_is_named(cells, subject):
    (finding,) = findings_in(SETUP, *cells, fails=False)
    assert (finding.slug, finding.subject) == ("eval-missing", subject)
    assert finding.fix.startswith(f"{subject}.eval()")
    assert finding.severity == "hint"


def test_the_fix_helps():
    mended = PART.replace("both.train()\n", "both.train()\nboth.teacher.eval()\n")
    assert findings_in(SETUP, mended, fails=False) == []
    assert findings_in(SETUP, "teacher.eval()", LOOP, fails=False) == []


FOLLOWS = """    for p, q in zip(student.parameters(), teacher.parameters()):
        q.data.mul_(0.99).add_(p.data, alpha=0.01)
"""
MIXED = """    t, s = teacher.state_dict(), student.state_dict()
    mixed = {k: 0.9 * t[k] + 0.1 * s[k] for k in t}
    teacher.load_state_dict(mixed)
"""
ADDED = """    for t, s in zip(teacher.parameters(), student.parameters()):
        t.data += 0.01 * (s.data - t.data)
"""
AVERAGED = "teacher = torch.optim.swa_utils.AveragedModel(student)\n"
CALIBRATED = """
teacher = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
with torch.no_grad():
    for _ in range(8):
        teacher(torch.randn(32, 6))
teacher.eval()
"""
MEASURED = """
with torch.no_grad():
    chance = teacher(torch.randn(16, 6)).pow(2).mean()
for _ in range(5):
    opt.zero_grad()
    student(torch.randn(16, 6)).pow(2).mean().backward()
    opt.step()
"""
ASLEEP = PART.replace("        with torch", "        self.teacher.eval()\n        with torch")
EPOCHS = ASLEEP.replace("    own.zero", "    both.train()\n    own.zero")
BOTH = "both = torch.optim.Adam([*teacher.parameters(), *student.parameters()])\n"


@pytest.mark.parametrize(
    "cells",
    [
        [LOOP + FOLLOWS],
        [LOOP + MIXED],
        [LOOP + ADDED],
        [AVERAGED + LOOP + "    teacher.update_parameters(student)\n"],
        [CALIBRATED + LOOP],
        [MEASURED],
        [ASLEEP],
        [EPOCHS],
        [LOOP.replace("\nfor _", "\nteacher.train()\nfor _", 1)],
        [BOTH + LOOP.replace("opt.", "both.")],
        ["teacher = make(0.0)", LOOP],
        ["noise = make(0.5)", LOOP.replace("teacher(x)", "noise(x)")],
        [PART.replace("both = ", "# a noisy teacher\nboth = ")],
        [PART.replace(".requires_grad_(False)", "").replace("both.student.p", "both.p")],
    ],
    ids=[
        "follows",
        "mixed",
        "added",
        "averaged",
        "calibrated",
        "measured",
        "asleep",
        "epochs",
        "chosen",
        "trained too",
        "no dropout",
        "another name",
        "noisy",
        "a part that learns",
    ],
)
def test_silent(cells):
    assert not [one for one in findings_in(SETUP, *cells, fails=False) if one.slug == "eval-missing"]
