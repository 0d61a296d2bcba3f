"""Modules that are cleared, beside others of the same optimizer that are not."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
enc, dec, other = nn.Linear(6, 3), nn.Linear(3, 6), nn.Linear(3, 1)
both = nn.ModuleList([enc, dec])
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.01)
other_opt = torch.optim.SGD(other.parameters(), lr=0.01)"""
LOOP = """\
for x in torch.randn(6, 16, 6):
    {first}
    loss = (dec(enc(x)) - x).pow(2).mean()
    loss.backward()
    opt.step()
    {last}"""


def found(cell):
    return findings_in(SETUP, cell, slug="missing-zero-grad", fails=False)


def test_one_of_two_modules_is_cleared():
    (finding,) = found(LOOP.format(first="enc.zero_grad()", last=""))
    assert (finding.line, finding.subject, finding.severity) == (2, "opt", "error")
    assert "2 of its 4 parameters of `dec` are left out" in finding.message


def test_the_other_of_two_modules_is_cleared():
    """The parameter that stands for all is in the first of them."""
    (finding,) = found(LOOP.format(first="dec.zero_grad()", last=""))
    assert (finding.line, finding.subject) == (5, "opt")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("enc.zero_grad(); dec.zero_grad()", ""),
        ("both.zero_grad()", ""),
        ("enc.zero_grad()", "dec.zero_grad()"),
        ("enc.zero_grad()", "opt.zero_grad()"),
        ("enc.zero_grad()", "for p in dec.parameters(): p.grad = None"),
        ("enc.zero_grad()", "dec.weight.grad.zero_(); dec.bias.grad.zero_()"),
        ("opt.zero_grad(); other.zero_grad()", ""),
    ],
)
def test_all_are_cleared(first, last):
    assert not found(LOOP.format(first=first, last=last))


def test_a_part_that_gets_no_gradient():
    code = LOOP.format(first="enc.zero_grad()", last="").replace("dec(enc(x)) - x", "enc(x)")
    assert not found(code)


def test_a_part_that_is_cleared_now_and_then():
    """Long after the steps that are looked at."""
    some = "opt.step()\n    count += 1\n    if count == 20: dec.zero_grad()"
    code = (
        LOOP.format(first="enc.zero_grad()", last="").replace("(6, 16, 6)", "(30, 16, 6)").replace("opt.step()", some)
    )
    assert not found("count = 0\n" + code)
