"""Variables that no optimizer holds at first, and that somebody takes, or changes, in the rounds that follow."""

import pytest

from tests.cells import a_notebook

SLUG = "parameters-missing-from-optimizer"
START = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
net = nn.Linear(4, 1)
opt = SGD(net.parameters(), lr=0.01)
def loss():
    return (F.mse_loss(net(x), y) * torch.exp(-s) + s).sum()
def turns(n, opt):
    for _ in range(n):
        opt.zero_grad()
        loss().backward()
        opt.step()
def raise_by(m):
    with torch.no_grad():
        m += 0.1
"""
PLAIN, OWN = "s = torch.zeros(1, requires_grad=True)", "s = nn.Parameter(torch.zeros(1))"
TAKEN = {
    "an optimizer for each phase": "for one in (net.parameters(), [s]):\n    turns(5, SGD(one, lr=0.1))",
    "after a warm-up": """\
for turn in range(40):
    if turn == 30:
        other = SGD([s], lr=0.1)
    turns(1, opt)
    if turn > 30:
        other.step()""",
    "a group": "turns(5, opt)\nopt.add_param_group({'params': [s]})\nturns(5, opt)",
    "a group in a function": """\
def fit(opt):
    turns(5, opt)
    opt.add_param_group({'params': [s]})
    turns(5, opt)
fit(SGD(net.parameters(), lr=0.1))""",
    "changed by a function": "for _ in range(6):\n    turns(10, opt)\n    raise_by(s)",
    "changed by another name": "every = [s]\nfor _ in range(6):\n    turns(10, opt)\n    raise_by(every[0])",
    "made anew": """\
def renew():
    global s
    s = type(s)((s + 0.1).detach()).requires_grad_()
for _ in range(6):
    turns(10, opt)
    renew()""",
}
LOCAL = """\
def main():
    s = {}
    for _ in range(6):
        for _ in range(10):
            opt.zero_grad()
            (F.mse_loss(net(x), y) * (1 + s)).sum().backward()
            opt.step()
        raise_by(s)
main()"""
HELD = """\
def weigh(loss, weight):
    return (loss * torch.exp(-weight) + weight).sum()
for _ in range(6):
    opt.zero_grad()
    weigh(F.mse_loss(net(x), y), s).backward()
    opt.step()"""


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return [f.severity for run in notebook.runs if run for f in run.findings if f.slug == SLUG]


@pytest.mark.parametrize("made", [PLAIN, OWN])
@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_or_changed_in_the_same_cell_is_silent(made, name):
    assert found(made, TAKEN[name]) == []


@pytest.mark.parametrize("made", [PLAIN, OWN])
def test_what_a_function_changes_is_silent_where_no_variable_is_left(made):
    assert found(LOCAL.format(made.removeprefix("s = "))) == []


@pytest.mark.parametrize(("made", "severity"), [(PLAIN, "hint"), (OWN, "error")])
@pytest.mark.parametrize(
    "code", ["turns(5, opt)", HELD, f"def fit():\n    turns(5, SGD(net.parameters(), lr=0.1))\n{'fit()'}"]
)
def test_what_nobody_takes_is_told(made, severity, code):
    assert found(made, code) == [severity]


SCALES = {
    "spread": ("mean, std = (torch.ones(4, requires_grad=True) for _ in range(2))", "net((x - mean) / std)"),
    "a grid of times": ("grid = torch.linspace(0, 1, 4, requires_grad=True)", "net(x[:, :1] * grid)"),
    "importance": ("importance = torch.ones(4, requires_grad=True)", "net(x * importance)"),
    "a template": (
        "template = torch.ones(1, 1, 2, 2, requires_grad=True)",
        "F.conv2d(net(x).view(1, 1, 4, 4), template)",
    ),
    "new in each epoch": ("", "net(x) * temperature"),
}
BATCHES = """\
for epoch in range(3):
    temperature = torch.tensor(1.0 + epoch, requires_grad=True)
    for _ in range(3):
        opt.zero_grad()
        ({}).square().mean().backward()
        opt.step()"""


@pytest.mark.parametrize("name", SCALES)
def test_data_that_want_gradients_are_silent(name):
    made, out = SCALES[name]
    assert found(made, BATCHES.format(out)) == []
