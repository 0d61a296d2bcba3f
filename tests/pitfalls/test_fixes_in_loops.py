"""Fixes for a line that runs again and again: put in its place, they do not change what the next turn reads."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, x, y = nn.Linear(3, 1), torch.randn(20, 3), torch.randn(20)
white = (y[:, None] > 0).float() * 255
opt = torch.optim.SGD(net.parameters(), lr=0.01)"""
UPDATE = "opt.zero_grad()\n    loss.backward()\n    opt.step()"


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("loss = ((net(x) - y) ** 2).mean()", "for _ in range(4):"),
        ("loss = F.binary_cross_entropy_with_logits(net(x), white)", "for _ in range(4):"),
        ("loss = F.l1_loss(net(x), y)", "y = y * 1\nfor _ in range(2):\n    y = y * 1.0"),
        ("loss = ((net(x) - y) ** 2).mean()", "def turns(x, y):\n  for _ in range(4):"),
        ("loss = ((net(x) - y) ** 2).mean()", "def turns(x, other):\n    "),
    ],
)
def test_put_in_the_place_of_the_line(line, before):
    after = "\nturns(x, y)" if before.startswith("def") else ""
    with a_notebook() as notebook:
        notebook.run("import warnings\nwarnings.simplefilter('ignore')")
        notebook.run(SETUP)
        (finding,) = notebook.run(f"{before}\n    {line}\n    {UPDATE}{after}").findings
        assert finding.fix.startswith("loss = "), finding.fix
        mended = notebook.run(f"{before}\n    {finding.fix}\n    {UPDATE}{after}")
        assert (mended.findings, mended.error) == ((), None)


@pytest.mark.parametrize(
    ("before", "fix"),
    [
        ("for x, y in [(x, torch.randn(20))]:", "y = y.unsqueeze(1)"),
        ("for _ in range(3):\n    y = torch.zeros(20)", "y = y.unsqueeze(1)"),
        ("def turn(x, y):", "y = y.unsqueeze(1)"),
    ],
)
def test_a_name_that_each_turn_gives_a_value(before, fix):
    after = "\nturn(x, y)" if before.startswith("def") else ""
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(f"{before}\n    loss = (net(x) - y).abs().mean()\n    {UPDATE}{after}").findings
    assert finding.fix.startswith(fix)


def test_a_difference_that_meets_a_row_again():
    cell = "values = net(x)\n{}\nloss = gap.square().mean() - (y * gap.detach()).mean()\nloss.backward()"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(cell.format("gap = y - values")).findings
        assert finding.fix.startswith("gap = y - values.squeeze(1)")
        assert not notebook.run(cell.format(finding.fix)).findings
