"""Steps written by hand: those that never clear the gradients, and the right ones."""

import re

import pytest

from tests.cells import findings_in
from torch_inspector.facts import steps_by_hand

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
x, y = torch.randn(32, 6), torch.randn(32, 1)
w = torch.zeros(6, 1, requires_grad=True)
"""
LOOP = """
for _ in range({turns}):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            {step}
"""
FUNCTION = "def step(lr=0.1):\n    for p in net.parameters():\n        p.data -= lr * p.grad"
LINES = """
for _ in range(5):
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
{after}
"""
PARTS = """
for _ in range(4):
    for a, b in zip(x.split(8), y.split(8)):
        (((a @ w - b) ** 2).mean() / 4).backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
"""
NOISE = """
for _ in range(5):
    noise = torch.randn_like(w)
    w.data += noise
    ((x @ w - y) ** 2).mean().backward()
    w.data -= noise
"""
ASKED = """
for _ in range(5):
    (g,) = torch.autograd.grad(((x @ w - y) ** 2).mean(), w)
    with torch.no_grad():
        w -= 0.1 * g
"""
NEW = """
v = torch.zeros(6, 1)
for _ in range(5):
    v = v.detach().requires_grad_()
    ((x @ v - y) ** 2).mean().backward()
    v = v - 0.1 * v.grad
"""
FOUND = {
    "under no_grad": (LOOP.format(turns=5, step="p -= 0.01 * p.grad"),),
    "in place": (LOOP.format(turns=5, step="p.sub_(0.01 * p.grad)"),),
    "add with alpha": (LOOP.format(turns=5, step="p.add_(p.grad, alpha=-0.01)"),),
    "through data": (FUNCTION, "for _ in range(5):\n    F.mse_loss(net(x), y).backward()\n    step()"),
    "one tensor": (LINES.format(after=""),),
}
QUIET = {
    "set to None": (LOOP.format(turns=5, step="p -= 0.01 * p.grad; p.grad = None"),),
    "zeroed": (LOOP.format(turns=5, step="p -= 0.01 * p.grad; p.grad.zero_()"),),
    "zeroed by the model": (LOOP.format(turns=5, step="p -= 0.01 * p.grad") + "    net.zero_grad()\n",),
    "momentum in the gradient": (LOOP.format(turns=5, step="p -= 0.01 * p.grad; p.grad *= 0.9"),),
    "once": (LOOP.format(turns=1, step="p -= 0.01 * p.grad"),),
    "a function that clears": (
        "def clear(ps):\n    for p in ps:\n        p.grad = None",
        LOOP.format(turns=5, step="p -= 0.01 * p.grad") + "    clear(net.parameters())\n",
    ),
    "parts of a batch": (PARTS,),
    "noise around the weights": (NOISE,),
    "asked for": (ASKED,),
    "a new leaf each time": (NEW,),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    (finding,) = findings_in(SETUP, *FOUND[name], fails=False)
    assert (finding.slug, finding.severity) == ("missing-zero-grad", "error")
    assert ".grad" in finding.code
    assert "5 backward calls" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(SETUP, *QUIET[name], fails=False, slug="missing-zero-grad") == []


@pytest.mark.parametrize(
    ("step", "owner", "fix"),
    [
        (
            "for q in ps: q -= 0.01 * q.grad",
            "q",
            "for q in ps: q -= 0.01 * q.grad; q.grad = None  # in place of the line",
        ),
        ("if True: ps[0].data.sub_(0.01 * ps[0].grad)", "ps[0]", "ps[0].grad = None  # after each step"),
    ],
)
def test_what_a_statement_of_one_line_steps_is_named(step, owner, fix):
    loop = LOOP.format(turns=5, step="pass").replace("for p in", "ps = list(net.parameters())\n        for p in")
    (finding,) = findings_in(SETUP, loop.replace("            pass", f"            pass\n        {step}"), fails=False)
    assert (finding.subject, finding.fix) == (owner, fix)


ONE_LINE = """
for turn in range(5):
    F.mse_loss(net(x), y).backward()
    BODY
"""
IN_LINE = {
    "a loop in one line": "for p in net.parameters(): p.data -= 0.1 * p.grad  # along it",
    "places in one line": "for i, p in enumerate(net.parameters()): p.data.sub_(0.1 * p.grad);",
    "a comprehension": "[p.data.sub_(0.1 * p.grad) for p in net.parameters()]",
    "branches": (
        "for p in net.parameters():\n"
        "        if p.dim() == 1: p.data -= 0.1 * p.grad\n"
        "        else: p.data -= 0.2 * p.grad"
    ),
}


@pytest.mark.parametrize("name", IN_LINE)
def test_the_fix_clears_all_that_a_line_steps(name):
    cell = ONE_LINE.replace("BODY", IN_LINE[name])
    (finding,) = findings_in(SETUP, cell, slug="missing-zero-grad")
    fix, _, remark = finding.fix.partition("  # ")
    line, lines = finding.line or 0, cell.splitlines()
    if remark == "in place of the line":
        lines[line - 1] = f"    {fix}"
    elif remark.startswith("at the end of each turn"):
        lines.append(f"        {fix}")
    else:
        lines.insert(line, f"    {fix}")
    check = "assert all(p.grad is None for p in net.parameters())"
    assert findings_in(SETUP, "\n".join([*lines, f"    {check}"]), slug="missing-zero-grad", fails=False) == []


TWO = """
v = torch.ones(6, 1, requires_grad=True)
for _ in range(5):
    loss = ((x @ w + (x * 2) @ v - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        v -= 0.01 * v.grad
        {}
"""


@pytest.mark.parametrize("clear", ["pass", "w.grad = None", "w.grad.zero_()"])
def test_all_that_is_stepped_and_not_cleared_is_named(clear):
    (finding,) = findings_in(SETUP, TWO.format(clear), slug="missing-zero-grad", fails=False)
    both = clear == "pass"
    assert finding.subject == ("w" if both else "v")
    assert ("(and so with `v`)" in finding.message) == both
    assert finding.fix == f"{'w.grad = v.grad' if both else 'v.grad'} = None  # after each step"
    mended = TWO.format(f"{clear}; {finding.fix}")
    assert not findings_in(SETUP, mended, slug="missing-zero-grad", fails=False)


@pytest.mark.parametrize(
    "clear",
    ["w.grad, v.grad = None, None", "w.grad.zero_(); v.grad.zero_()", "w.grad = None; v.grad *= 0.9",
     "for one in (w, v): one.grad = None"],
)  # fmt: skip
def test_gradients_that_are_all_cleared_or_changed(clear):
    assert not findings_in(SETUP, TWO.format(clear), slug="missing-zero-grad", fails=False)


IMAGE = f"image = '{'a' * 2_000}'"


@pytest.mark.parametrize(
    ("line", "count"), [(IMAGE, 1), (f"{IMAGE}; w.grad = v.grad = None", 0), (f"{IMAGE}; w.grad.zero_()", 0)]
)
def test_a_line_that_nobody_typed_is_taken_for_one_that_clears(line, count):
    assert len(findings_in(SETUP, TWO.format(line), slug="missing-zero-grad", fails=False)) == count


def test_names_are_looked_for_at_the_beginnings_of_words_only():
    name = re.compile(steps_by_hand._NAME)
    assert [at for at in range(9) if name.match("net w.b3é", at)] == [0, 4, 6]
