"""What is said of gradients that are cleared now and then."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
net, x = nn.Linear(3, 1), torch.rand(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""
EPOCHS = """\
for epoch in range(2):
    {}
    for _ in range(4):
        net(x).mean().backward()
        opt.step()"""


def said(first):
    (finding,) = findings_in(SETUP, EPOCHS.format(first), slug="missing-zero-grad", fails=False)
    return finding.message


def test_once_in_an_epoch_is_told_apart_from_never():
    assert "since they were last cleared" in said("opt.zero_grad()")
    assert "(all 8 steps): each step followed the sum of all gradients so far" in said("pass")


METHOD = """\
class Fit:
    def __init__(self):
        self.opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
    def closure(self):
        loss = net(x).square().mean()
        loss.backward()
        return loss
    def fit(self):
        for _ in range(6):
            self.opt.step(self.closure)
fit = Fit()"""
INNER = """\
def train(solver):
    def closure():
        loss = net(x).square().mean()
        loss.backward()
        return loss
    for _ in range(6):
        solver.step(closure)"""
OUTER = """\
solver = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    loss = net(x).square().mean()
    loss.backward()
    return loss"""
OUTER_LOOP = "for _ in range(6):\n    solver.step(closure)"


@pytest.mark.parametrize(
    ("code", "call", "fix"),
    [
        (METHOD, "fit.fit()", "self.opt.zero_grad()  # in closure(), before its backward(), line 6"),
        (INNER, "train(torch.optim.LBFGS(net.parameters()))", "solver.zero_grad()  # in closure(), before its"),
        (OUTER, OUTER_LOOP, "solver.zero_grad()  # in closure(), before its backward(), line 4"),
    ],
)
def test_with_a_closure_it_belongs_into_the_closure(code, call, fix):
    (finding,) = findings_in(SETUP, code, call, slug="missing-zero-grad", fails=False)
    assert finding.fix.startswith(fix)
    indent = " " * (8 if code != OUTER else 4)
    mended = code.replace(f"{indent}loss.backward()", f"{indent}{finding.fix}\n{indent}loss.backward()")
    assert findings_in(SETUP, mended, call, slug="missing-zero-grad", fails=False) == []


FAILS = """\
adam = torch.optim.Adam(net.parameters())
def fit(turns):
    for _ in range(turns):
        net(x.to(net.weight.dtype)).mean().backward()
        adam.step()"""


def test_a_step_that_failed_is_none():
    cells = (SETUP, FAILS, "fit({})", "net.double();", "fit(1)")
    once, often = ([one.format(turns) for one in cells] for turns in (1, 3))
    assert not findings_in(*once, slug="missing-zero-grad", fails=True)
    (finding,) = findings_in(*often, slug="missing-zero-grad", fails=True)
    assert "(all 3 steps)" in finding.message
