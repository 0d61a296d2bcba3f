"""Fixes that set something of a loader: the call as it was written, where it is known."""

import pytest

from tests.cells import findings_in

START = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.rand({}, 3), torch.rand({}, 1))
loader = {}
"""
LOOP = """
for x, y in loader:
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""


def fix(count, made, slug, loop=LOOP):
    (finding,) = findings_in(START.format(count, count, made), loop, slug=slug)
    return finding.fix


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("DataLoader(data, batch_size=64)", "loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)"),
        (
            "torch.utils.data.DataLoader(data, 64, shuffle=False)",
            "loader = torch.utils.data.DataLoader(data, 64, shuffle=True, drop_last=True)",
        ),
        ("DataLoader(data, 64, True)", "DataLoader(…, batch_size=64, shuffle=True, drop_last=True)"),
        (
            "DataLoader(data, batch_size=64, sampler=torch.utils.data.RandomSampler(data))",
            "DataLoader(…, batch_size=64, shuffle=True, drop_last=True)",
        ),
        ("DataLoader(data, **{'batch_size': 64})", "DataLoader(…, batch_size=64, shuffle=True, drop_last=True)"),
    ],
)
def test_a_last_batch_of_few(made, line):
    assert fix(130, made, "ragged-last-batch").partition("  #")[0] == line


def test_a_batch_that_is_dropped():
    line = fix(20, "DataLoader(data, batch_size=32, drop_last=True)", "drop-last-empty")
    assert line == "loader = DataLoader(data, batch_size=32, drop_last=False)  # or batch_size of at most 20"


def test_a_loader_that_a_function_is_given_may_be_another_one():
    body = LOOP.replace("\n", "\n    ")
    line = fix(130, "DataLoader(data, batch_size=64)", "ragged-last-batch", f"def train(loader):{body}\ntrain(loader)")
    assert line.startswith("DataLoader(…, batch_size=64")
