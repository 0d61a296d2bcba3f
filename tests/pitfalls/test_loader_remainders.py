"""Loaders whose last batch is tiny, or the only one and dropped."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.randn(130, 3), torch.randn(130, 1))
def train(model, loader):
    for xb, yb in loader:
        opt.zero_grad()
        loss = ((model(xb) - yb) ** 2).mean()
        loss.backward()
        opt.step()
"""
LOOP = """
for i, (xb, yb) in enumerate(loader):
    opt.zero_grad()
    ((net(xb) - yb) ** 2).mean().backward()
    opt.step()
"""
RAGGED = {
    "a loop": ("loader = DataLoader(data, 64)" + LOOP, 2, 2),
    "a function": ("l = DataLoader(data, 64)\ntrain(net, l)", 1, 10),
    "a subset": ("loader = DataLoader(Subset(data, list(range(33))), 32)" + LOOP, 2, 2),
    "epochs": ("loader = DataLoader(data, 64)\nfor epoch in range(2):" + LOOP.replace("\n", "\n    "), 2, 3),
}
EMPTY = {
    "a loop": ("loader = DataLoader(data, 256, drop_last=True)" + LOOP, 2, 2),
    "a function": ("l = DataLoader(data, 256, drop_last=True)\ntrain(net, l)", 1, 10),
    "evaluation": (
        "val = DataLoader(Subset(data, range(9)), 32, drop_last=True)\nn = 0\nfor xb, yb in val:\n    n += 1",
        2,
        3,
    ),
}
SILENT = {
    "divides": "loader = DataLoader(data, 65)" + LOOP,
    "half": "loader = DataLoader(data, 80)" + LOOP,
    "dropped": "loader = DataLoader(data, 64, drop_last=True)" + LOOP,
    "evaluation": "loader = DataLoader(data, 64)\nwith torch.no_grad():\n    e = [net(xb).sum() for xb, _ in loader]",
    "one batch": "loader = DataLoader(data, 1000)" + LOOP,
    "an own dataset": (
        "class Own(torch.utils.data.Dataset):\n    def __len__(self):\n        raise OSError\n"
        "    def __getitem__(self, i):\n        return torch.zeros(3), torch.zeros(1)\n"
        "loader = DataLoader(Own(), batch_sampler=[[0, 1], [2]])" + LOOP
    ),
}


def found(slug, source):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        assert notebook.errors == [None, None]
        return [finding for finding in run.findings if finding.slug == slug]


@pytest.mark.parametrize("name", RAGGED)
def test_a_tiny_last_batch(name):
    source, cell, line = RAGGED[name]
    (finding,) = found("ragged-last-batch", source)
    assert (finding.cell, finding.line) == (cell, line)


@pytest.mark.parametrize("name", EMPTY)
def test_no_batch_at_all(name):
    source, cell, line = EMPTY[name]
    (finding,) = found("drop-last-empty", source)
    assert (finding.cell, finding.line) == (cell, line)


@pytest.mark.parametrize("name", SILENT)
def test_other_loaders(name):
    assert found("ragged-last-batch", SILENT[name]) == []
    assert found("drop-last-empty", SILENT[name]) == []


OWN = """
class Replay(torch.utils.data.Dataset):
    def __init__(self):
        self.steps = []
    def __len__(self):
        return len(self.steps)
    def __getitem__(self, index):
        return self.steps[index]
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from ()
memory, seen = Replay(), 0
learner = DataLoader(memory, batch_size=16, drop_last=True)
"""
GROWS = """
for turn in range(3):
    memory.steps.extend(torch.randn(10, 3))
    for batch in learner:
        seen += len(batch)
"""
DRY = "memory.steps.extend(torch.randn(10, 3))\nfor {line}:\n    seen += len(batch)"


def dropped(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, OWN, *cells):
            notebook.run(source)
        return [one for run in notebook.runs if run for one in run.findings if one.slug == "drop-last-empty"]


@pytest.mark.parametrize("line", ["batch in learner", "i, batch in enumerate(learner)"])
def test_a_dataset_of_ones_own_is_not_asked_for_its_length(line):
    (finding,) = dropped(DRY.format(line=line))
    assert (finding.subject, finding.line) == ("learner", 2)


@pytest.mark.parametrize(
    "cell", [GROWS, "for batch in DataLoader(Stream(), batch_size=4, drop_last=True):\n    seen += 1"]
)
def test_no_batch_now_may_be_right(cell):
    assert not dropped(cell)
