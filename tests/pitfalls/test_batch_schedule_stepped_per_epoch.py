"""Schedules of batches that follow epochs, and those that only look so."""

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
TOTAL = EPOCHS * len(loader)
def update(x):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
"""
LOOP = """
s = {}
for epoch in range({}):
    for xb, yb in loader:
        update(xb)
    s.step()
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.schedule = lr_scheduler.OneCycleLR(opt, 0.1, epochs=EPOCHS, steps_per_epoch=len(loader))
    def one_epoch(self):
        for xb, _ in loader:
            update(xb)
    def fit(self):
        for epoch in range(EPOCHS):
            self.one_epoch()
            self.schedule.step()
trainer = Trainer()
trainer.fit()
"""


def told(*cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert not any(notebook.errors)
        runs = [run for run in notebook.runs if run]
        return [f for run in runs for f in run.findings if f.slug == "batch-schedule-stepped-per-epoch"]


FOUND = {
    "one cycle": "lr_scheduler.OneCycleLR(opt, 0.1, epochs=EPOCHS, steps_per_epoch=len(loader))",
    "one cycle by a number": "lr_scheduler.OneCycleLR(opt, 0.1, TOTAL)",
    "cosine over all": "lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * len(loader))",
    "cosine over an epoch": "lr_scheduler.CosineAnnealingLR(opt, len(loader))",
    "linear": "lr_scheduler.LinearLR(opt, 1.0, 0.01, total_iters=len(loader) * EPOCHS)",
    "accumulated": "lr_scheduler.LinearLR(opt, 1.0, 0.01, total_iters=max(1, -(-EPOCHS * len(loader) // 1)))",
    "restarts": "lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=len(loader))",
}
QUIET = {
    "epochs": ("lr_scheduler.CosineAnnealingLR(opt, EPOCHS)", 5),
    "the first of more epochs": ("lr_scheduler.CosineAnnealingLR(opt, 100)", 5),
    "a number": ("lr_scheduler.OneCycleLR(opt, 0.1, total_steps=100)", 5),
    "as many epochs as batches": ("lr_scheduler.CosineAnnealingLR(opt, T_max=len(loader))", 20),
    "more than all": ("lr_scheduler.CosineAnnealingLR(opt, T_max=len(loader) + 7)", 5),
    "something else is that long": ("lr_scheduler.CosineAnnealingLR(opt, T_max=len('twelve words'))", 5),
    "one call": ("lr_scheduler.OneCycleLR(opt, 0.1, TOTAL)", 1),
}


@pytest.mark.parametrize("name", FOUND)
def test_made_for_batches(name):
    (finding,) = told(LOOP.format(FOUND[name], "EPOCHS"))
    assert (finding.line, finding.subject, finding.severity) == (6, "s", "warning")
    assert "ran 5 times, once per epoch" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_made_for_epochs_or_not_known(name):
    schedule, epochs = QUIET[name]
    assert not told(LOOP.format(schedule, epochs))


@pytest.mark.parametrize(
    ("before", "schedule"),
    [
        ("temps = torch.linspace(1, 0.1, 20)", "lr_scheduler.CosineAnnealingLR(opt, T_max=len(temps))"),
        ("tasks = list(range(20))", "lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=len(tasks))"),
        ("history = [0] * 80", "lr_scheduler.CosineAnnealingLR(opt, T_max=100 - len(history))"),
        ("budget = 2000", "lr_scheduler.CosineAnnealingLR(opt, T_max=budget // len(loader))"),
        ("epochs = -(-2000 // len(loader))", "lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)"),
        ("n = len(loader)", "lr_scheduler.CosineAnnealingLR(opt, T_max=int(2000 / n))"),
        ("n = len(loader)", "lr_scheduler.CosineAnnealingLR(opt, T_max=100 * n // n)"),
        ("longest = max(100, len(loader))", "lr_scheduler.CosineAnnealingLR(opt, T_max=longest)"),
        ("pass", "lr_scheduler.OneCycleLR(opt, 0.1, epochs=100, steps_per_epoch=1)"),
        ("steps = len(loader)", "lr_scheduler.CosineAnnealingLR(opt, T_max=steps)"),
    ],
)
def test_the_length_of_something_else(before, schedule):
    assert not told(before, "steps = 20" + LOOP.format(schedule, "EPOCHS"))


def test_in_a_trainer_and_over_two_cells():
    (finding,) = told(TRAINER)
    assert (finding.line, finding.subject) == (11, "trainer.schedule")
    cells = LOOP.format(FOUND["one cycle"], "EPOCHS").split("for epoch", 1)
    assert len(told(cells[0], f"for epoch{cells[1]}")) == 1


@pytest.mark.parametrize(
    "body",
    [
        "    for xb, yb in loader:\n        update(xb)\n        s.step()",
        "    for xb, yb in loader:\n        for k in range(20):\n            update(xb)\n        s.step()",
        "    for i, (xb, yb) in enumerate(loader):\n        update(xb)\n        if i % 2:\n            s.step()",
    ],
)
def test_stepped_with_the_batches(body):
    assert not told(f"s = {FOUND['one cycle']}\nfor epoch in range(EPOCHS):\n{body}")
