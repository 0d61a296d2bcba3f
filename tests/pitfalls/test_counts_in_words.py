"""What findings say of how many and of what: no more than was seen, and in the right number."""

import pytest

from tests.cells import findings_in

SETUP = """import torch
from torch import nn
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
x = torch.randn(64, 8)"""
LOOP = "for _ in range({}):\n    {}\n    net(x).square().mean().backward()\n    opt.step()"
MIXTURE = """class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = [nn.Linear(8, 1) for _ in range(3)]
    def forward(self, rows):
        return (self.gate(rows).softmax(-1) * torch.cat([one(rows) for one in self.experts], -1)).sum(-1)
def fit(model):
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    model(x).square().mean().backward()
    opt.step()"""


@pytest.mark.parametrize(("line", "said"), [("opt.zero_grad", True), ("pass  # opt.zero_grad", False)])
def test_a_method_that_is_named_and_not_called(line, said):
    (finding,) = findings_in(SETUP, LOOP.format(8, line), slug="missing-zero-grad")
    assert ("Line 2 names `zero_grad` without calling it" in finding.message) == said


def test_one_that_is_called_is_silent():
    assert not findings_in(SETUP, LOOP.format(8, "opt.zero_grad()"), slug="missing-zero-grad")


def test_a_module_with_two_names_is_one():
    findings = findings_in(SETUP, MIXTURE, "mixture = Mixture()\nfit(mixture)", slug="modules-in-plain-list")
    assert findings
    assert not any("modules of class" in one.message for one in findings)
    assert all("3 layers (the first: Linear)" in one.message for one in findings)


def test_two_modules_are_two():
    both = "pair = Mixture(), Mixture()\nfor one in pair:\n    fit(one)"
    findings = findings_in(SETUP, MIXTURE, both, slug="modules-in-plain-list")
    assert any("2 modules of class Mixture" in one.message for one in findings)


LOOPED = """other = torch.optim.SGD([scale], lr=1e-4)
opts = [opt, other]
for _ in range(4):
    (net(x) * scale).square().mean().backward()
    for one in opts:
        one.zero_grad()
    for one in opts:
        one.step()"""
LOOP_HEAD = LOOPED.split("    for one", maxsplit=1)[0]
APART = LOOP_HEAD + "    opt.zero_grad()\n    opt.step()\n    other.zero_grad()\n    other.step()"


@pytest.mark.parametrize(("loop", "count"), [(LOOPED, 1), (APART, 2)])
def test_a_loop_over_optimizers_is_one_mistake(loop, count):
    scale = "scale = torch.ones(1, requires_grad=True)\n"
    assert len(findings_in(SETUP, scale + loop, slug="zero-grad-misplaced")) == count
