"""Schedules of epochs that follow batches, and schedules of batches."""

import sys

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(320, 4), torch.randn(320, 1)), batch_size=16)
EPOCHS = 5
def update(x=None):
    opt.zero_grad()
    net(torch.ones(4, 4) if x is None else x).pow(2).mean().backward()
    opt.step()
"""
NESTED = """
sched = {schedule}
for epoch in range(EPOCHS):
    for xb, yb in loader:
        update(xb)
        sched.step()
"""
TRAINER = """
class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs
        self.schedule = lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    def one_epoch(self):
        for xb, _ in loader:
            update(xb)
            self.schedule.step()
    def fit(self):
        for epoch in range(self.epochs):
            self.one_epoch()
Trainer(4).fit()
"""


def findings(source):
    with a_notebook() as notebook:
        for cell in (SETUP, source):
            notebook.run(cell)
        return [f for f in notebook.runs[-1].findings if f.slug == "epoch-schedule-stepped-per-batch"]


FOUND = {
    "StepLR": "lr_scheduler.StepLR(opt, step_size=7)",
    "a short StepLR": "lr_scheduler.StepLR(opt, 5, gamma=0.5)",
    "StepLR over one": "lr_scheduler.StepLR(opt, 1, gamma=0.9)",
    "ExponentialLR": "lr_scheduler.ExponentialLR(opt, 0.9)",
    "ExponentialLR of 95": "lr_scheduler.ExponentialLR(opt, 0.95)",
    "MultiStepLR": "lr_scheduler.MultiStepLR(opt, [2, 4])",
    "CosineAnnealingLR": "lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)",
    "PolynomialLR": "lr_scheduler.PolynomialLR(opt, total_iters=EPOCHS)",
    "LambdaLR": "lr_scheduler.LambdaLR(opt, lambda epoch: 0.8 ** epoch)",
    "Restarts": "lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=5)",
}
QUIET = {
    "OneCycleLR": "lr_scheduler.OneCycleLR(opt, max_lr=0.1, epochs=EPOCHS, steps_per_epoch=len(loader))",
    "cosine over all": "lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * len(loader))",
    "cosine per epoch": "lr_scheduler.CosineAnnealingLR(opt, T_max=len(loader))",
    "warm-up": "lr_scheduler.LinearLR(opt, 0.01, total_iters=5)",
    "linear to zero": "lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=EPOCHS * len(loader))",
    "StepLR of epochs in batches": "lr_scheduler.StepLR(opt, step_size=2 * len(loader), gamma=0.1)",
    "slow ExponentialLR": "lr_scheduler.ExponentialLR(opt, 0.99)",
    "geometric": "lr_scheduler.ExponentialLR(opt, 1e-4 ** (1 / (EPOCHS * len(loader))))",
    "milestones in batches": "lr_scheduler.MultiStepLR(opt, [50, 80])",
    "inverse root": "lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / 10, ((s + 1) / 10) ** -0.5))",
    "lambda to zero": "lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / 100))",
    "polynomial": "lr_scheduler.PolynomialLR(opt, total_iters=EPOCHS * len(loader), power=2)",
    "cyclic": "lr_scheduler.CyclicLR(opt, 0.01, 0.1, step_size_up=10)",
}
MILESTONES = (
    "s = lr_scheduler.MultiStepLR(opt, {}, gamma=0.5)\nfor e in range({}):\n    for x, y in small:\n"
    "        update(x)\n        s.step()"
)
SMALL = "small = list(loader)[:8]\n"
ALSO_FOUND = {
    "milestones beyond an epoch": (SMALL + MILESTONES.format("[10, 20]", 25), 6, "s"),
    "a trainer": (TRAINER, 9, "self.schedule"),
    "plateau": (
        (
            "p = lr_scheduler.ReduceLROnPlateau(opt, patience=2)\nfor e in range(EPOCHS):\n    for x, y in loader:\n"
            "        update(x)\n        p.step(1.0)"
        ),
        5,
        "p",
    ),
    "one cycle for the epochs": (
        (
            "s = lr_scheduler.OneCycleLR(opt, 0.1, total_steps=EPOCHS)\nfor e in range(EPOCHS):\n"
            "    for x, y in loader:\n        update(x)\n        s.step()"
        ),
        5,
        "s",
    ),
}
ALSO_QUIET = {
    "milestones of all batches": SMALL + MILESTONES.format("[60, 150]", 25),
    "early milestones": SMALL + MILESTONES.format("[4, 10]", 25),
    "once per epoch": (
        "s = lr_scheduler.StepLR(opt, 1)\nfor e in range(5):\n    for x, y in loader:\n        update(x)\n    s.step()"
    ),
    "one loop": "s = lr_scheduler.ExponentialLR(opt, 0.9)\nfor e in range(300):\n    update()\n    s.step()",
    "searched": (
        "for seed in range(3):\n    s = lr_scheduler.ExponentialLR(opt, 0.9)\n    for e in range(100):\n"
        "        update()\n        s.step()"
    ),
    "fractions": (
        "s = lr_scheduler.CosineAnnealingWarmRestarts(opt, 2)\nfor e in range(EPOCHS):\n"
        "    for i, (x, y) in enumerate(loader):\n        update(x)\n        s.step(e + i / len(loader))"
    ),
    "plateau per epoch": (
        "s = lr_scheduler.ReduceLROnPlateau(opt, patience=1)\nfor e in range(EPOCHS):\n    for x, y in loader:\n"
        "        update(x)\n    s.step(1.0)"
    ),
    "phases": (
        "s = lr_scheduler.StepLR(opt, 1)\nfor e in range(EPOCHS):\n    for phase in ('train', 'val'):\n"
        "        for x, y in loader:\n            if phase == 'train':\n                update(x)\n"
        "        if phase == 'train':\n            s.step()"
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    (finding,) = findings(NESTED.format(schedule=FOUND[name]))
    assert (finding.line, finding.subject) == (6, "sched")


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings(NESTED.format(schedule=QUIET[name])) == []


@pytest.mark.parametrize("name", ALSO_FOUND)
def test_also_found(name):
    source, line, subject = ALSO_FOUND[name]
    assert [(one.line, one.subject) for one in findings(source)] == [(line, subject)]


@pytest.mark.parametrize("name", ALSO_QUIET)
@pytest.mark.filterwarnings("ignore")
def test_also_silent(name):
    assert findings(ALSO_QUIET[name]) == []


@pytest.mark.parametrize(
    ("schedule", "told"),
    [("[12, 18], gamma=0.1", ["hint"]), ("[18]", []), ("[12, 18], gamma=2.0", []), ("[8, 35]", [])],
)
def test_several_milestones_in_the_first_epoch_may_be_meant(schedule, told):
    source = NESTED.format(schedule=f"lr_scheduler.MultiStepLR(opt, {schedule})")
    assert [one.severity for one in findings(source)] == told


FIT = """
def fit(epochs):
    own = nn.Linear(4, 1)
    local = torch.optim.SGD(own.parameters(), lr=0.1)
    sched = {schedule}
    for epoch in range(epochs):
        for xb, yb in loader:
            local.zero_grad()
            own(xb).pow(2).mean().backward()
            local.step()
{step}
for run in range(2):
    fit(20)
"""
PER_BATCH, PER_EPOCH = "            sched.step()", "        sched.step()"


@pytest.mark.parametrize("schedule", ["lr_scheduler.StepLR(local, 7)", "lr_scheduler.ExponentialLR(local, 0.9)"])
def test_an_optimizer_that_is_gone_with_its_function(schedule):
    assert len(findings(FIT.format(schedule=schedule, step=PER_BATCH))) == 1
    assert findings(FIT.format(schedule=schedule, step=PER_EPOCH)) == []


@pytest.mark.parametrize("owner", ["CFG", "CFG()", "Small()"])
def test_epochs_that_a_class_has(owner):
    source = (
        "class CFG:\n    epochs = 5\nclass Small(CFG):\n    rate = 0.1\n"
        f"settings = {owner}\nEPOCHS = None\nsched = lr_scheduler.CosineAnnealingLR(opt, T_max=settings.epochs)\n"
        "for epoch in range(settings.epochs):\n    for xb, yb in loader:\n        update(xb)\n        sched.step()"
    )
    (finding,) = findings(source)
    assert "`T_max=5` is the number of epochs" in finding.message
    assert findings(source.replace("T_max=settings.epochs", "T_max=settings.epochs * len(loader)")) == []


IN_EXPRESSION = """
def fit_batch(xb, yb):
    opt.zero_grad()
    net(xb).pow(2).mean().backward()
    opt.step()
    sched.step()
    return 1.0
sched = lr_scheduler.MultiStepLR(opt, milestones={milestones}, gamma=0.1)
for epoch in range({epochs}):
    mean = {expression}
"""
EXPRESSIONS = [
    "sum(fit_batch(*b) for b in loader) / len(loader)",
    "sum([fit_batch(*b) for b in loader]) / len(loader)",
    "max({fit_batch(xb, yb) for xb, yb in loader})",
    "[fit_batch(*b)\\n            for b in loader]",
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code does not say where in a line it is")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_loop_over_batches_in_an_expression(expression):
    expression = expression.replace("\\n", "\n")
    (finding,) = findings(IN_EXPRESSION.format(milestones=[3, 5], epochs=6, expression=expression))
    assert "within the 20 batches of the first epoch; the loop has 6 epochs" in finding.message
    assert findings(IN_EXPRESSION.format(milestones=[60, 100], epochs=6, expression=expression)) == []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_one_loop_in_an_expression_is_no_loop_in_a_loop(expression):
    source = IN_EXPRESSION.format(milestones=[3, 5], epochs=6, expression=expression.replace("\\n", "\n"))
    assert findings(source.replace("for epoch in range(6):", "if True:")) == []
