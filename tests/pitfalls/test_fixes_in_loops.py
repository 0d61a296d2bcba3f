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


FRESH = "x, y = torch.randn(20, 3), torch.randn(20)"
LOSS = "loss = F.mse_loss(net(x), y)"


@pytest.mark.parametrize(
    "cell",
    [
        "for step in range(6):\n    if step % 3 == 0:\n        {fresh}\n    {loss}\n    {update}",
        "for step in range(6):\n    for _ in range(step % 2):\n        {fresh}\n    {loss}\n    {update}",
        "def run():\n    n = sum(len(y) for y in [x])\n    {loss}\n    {update}\nrun()",
        "def run():\n    size = lambda y: len(y)\n    {loss}\n    {update}\nrun()",
        "def run():\n    def size(y):\n        return len(y)\n    {loss}\n    {update}\nrun()",
        "def run():\n    class Kept:\n        y = 1\n    {loss}\n    {update}\nrun()",
    ],
)
def test_a_name_that_not_each_turn_gives_a_value(cell):
    """As a statement of its own the fix would be taken twice, or would make the name one of the function."""
    parts = {"fresh": FRESH, "update": UPDATE}
    with a_notebook() as notebook:
        notebook.run("import warnings\nwarnings.simplefilter('ignore')")
        notebook.run(SETUP)
        (finding,) = notebook.run(cell.format(loss=LOSS, **parts)).findings
        assert finding.fix.startswith("loss = "), finding.fix
        mended = notebook.run(cell.format(loss=finding.fix, **parts))
        assert (mended.findings, mended.error) == ((), None)


@pytest.mark.parametrize(
    "before",
    [
        "try:\n        {fresh}\n    except ValueError:\n        continue",
        "if step % 2:\n        {fresh}\n    else:\n        {fresh}",
        "with torch.no_grad():\n        {fresh}",
        "if (y := torch.randn(20)) is None:\n        break",
    ],
)
def test_a_name_that_every_way_gives_a_value(before):
    cell = f"for step in range(6):\n    {before.format(fresh=FRESH)}\n    {{}}\n    {UPDATE}"
    with a_notebook() as notebook:
        notebook.run("import warnings\nwarnings.simplefilter('ignore')")
        notebook.run(SETUP)
        (finding,) = notebook.run(cell.format(LOSS)).findings
        assert finding.fix.startswith("y = y.unsqueeze(1)"), finding.fix
        assert not notebook.run(cell.format(f"{finding.fix}\n    {LOSS}")).findings


def test_an_entry_of_a_batch_that_comes_again():
    cell = "batch = {'y': y}\nfor _ in range(3):\n    loss = F.mse_loss(net(x), batch['y'])\n    " + UPDATE
    comprehended = "for _ in [F.mse_loss(net(a), b).backward() for a, b in [(x, y)]]: pass"
    with a_notebook() as notebook:
        notebook.run("import warnings\nwarnings.simplefilter('ignore')")
        notebook.run(SETUP)
        for text in (cell, comprehended):
            for finding in notebook.run(text).findings:
                assert not finding.fix.startswith(("batch['y'] =", "b =")), finding.fix


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kept = y - y.mean()", "print((kept * kept).sum(), kept.std())"),
        ("kept = y - 0.5", "print(kept.sum(), kept.std())"),
        ("mean = y.mean()\nkept = y - mean", "print(loss / kept.var(), kept.sum())"),
        ("base = torch.zeros(20, 1)\nkept = y - base.squeeze(1)", "print(kept.sum(), kept.std())"),
    ],
)
def test_a_difference_that_has_nothing_to_do_with_the_loss(before, after):
    cell = f"{before}\n{{}}\n{after}\nloss.backward()"
    with a_notebook() as notebook:
        notebook.run("import warnings\nwarnings.simplefilter('ignore')")
        notebook.run(SETUP)
        (finding,) = notebook.run(cell.format("loss = ((net(x) - y) ** 2).mean()")).findings
        assert finding.fix.startswith("loss = ((net(x) - y.unsqueeze(1)) ** 2).mean()"), finding.fix
        assert not notebook.run(cell.format(finding.fix)).findings


def test_a_difference_of_more_axes():
    cell = "values = net(torch.randn(8, 8, 3))\n{}\nloss = gap.square().mean() + gap.abs().mean()\nloss.backward()"
    with a_notebook() as notebook:
        notebook.run(f"{SETUP}\ny = torch.randn(8, 8)")
        (finding,) = notebook.run(cell.format("gap = y - values")).findings
        assert finding.fix.startswith("gap = y - values.squeeze(2)"), finding.fix
        assert not notebook.run(cell.format(finding.fix)).findings


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("def run():\n    for _ in range(2):\n        p = {}\nrun()", "p = net(wide.float())"),
        ("def run(wide):\n    p = {}\nrun(wide)", "wide = wide.float()"),
        ("for _ in range(2):\n    p = {}", "wide = wide.float()"),
        ("def run():\n    global wide\n    wide = wide[:4]\n    p = {}\nrun()", "wide = wide.float()"),
    ],
)
def test_a_variable_from_outside_of_a_function(cell, fix):
    with a_notebook() as notebook:
        notebook.run(f"{SETUP}\nwide = x.double()")
        (finding,) = notebook.run(cell.format("net(wide)")).findings
        assert (finding.slug, finding.fix.partition("  #")[0]) == ("dtype-mismatch", fix)


def test_an_input_of_other_axes_in_a_loop():
    with a_notebook() as notebook:
        notebook.run(f"{SETUP}\nturned = x[0]\nconv = nn.Conv2d(1, 2, 3)\npicture = torch.rand(2, 8, 8)")
        (finding,) = notebook.run("for _ in range(2):\n    out = conv(picture)").findings
        assert finding.fix.startswith(("out = conv(", "#")), finding.fix
