"""Accumulation whose division stands in an earlier cell, or is done to the gradients."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ACC, n, norms = 4, 0, []
data = [(torch.randn(8, 3), torch.randint(0, 2, (8,))) for _ in range(12)]
"""
LOOP = """\
for x, y in data:
    loss = {loss}
    loss.backward()
    n += 1
    if n == ACC:
        {before}
        opt.step(); opt.zero_grad(); n = 0
"""
MEAN = "F.cross_entropy(net(x), y)"
CRITERION = """\
class Criterion:
    def __init__(self, every):
        self.every = every
    def __call__(self, out, y):
        return F.cross_entropy(out, y) / self.every + 3 * out.pow(2).mean() / self.every
criterion = Criterion(ACC)
"""


def told(earlier="", *, loss=MEAN, before="pass"):
    found = findings_in(SETUP + earlier, LOOP.format(loss=loss, before=before), slug="accumulation-unscaled")
    return bool(found)


@pytest.mark.parametrize(
    ("earlier", "loss"),
    [
        (
            "def objective(out, y):\n    return F.cross_entropy(out, y) / ACC + 3 * out.pow(2).mean() / ACC",
            "objective(net(x), y)",
        ),
        (
            "objective = lambda out, y: F.cross_entropy(out, y) / 4 + 3 * out.pow(2).mean() / 4",
            "objective(net(x), y)",
        ),
        (CRITERION, "criterion(net(x), y)"),
    ],
)
def test_terms_that_an_earlier_cell_divides(earlier, loss):
    assert not told(earlier, loss=loss)


def test_terms_that_an_earlier_cell_divides_by_another_number():
    halves = "def objective(out, y):\n    return F.cross_entropy(out, y) / 2 + out.pow(2).mean() / 2"
    assert told(halves, loss="objective(net(x), y)")


ALL = "for p in net.parameters(): "
OWN = [
    ("", f"{ALL}g = p.grad; g /= n"),
    ("", f"{ALL}g = p.grad.view(-1); g.mul_(0.25)"),
    ("", f"{ALL}torch.div(p.grad, n, out=p.grad)"),
    ("", f"{ALL}p.grad.data /= n"),
    ("", f"{ALL}p.grad[:] = p.grad / n"),
    ("", "grads = {k: p.grad for k, p in net.named_parameters()}; [g.div_(n) for g in grads.values()]"),
    ("def finish(some, by):\n    for one in some: one /= by", "finish([p.grad for p in net.parameters()], n)"),
    ("def finish():\n    for p in net.parameters():\n        g = p.grad\n        g /= ACC", "finish()"),
    (f"{ALL}p.register_hook(lambda g: g / ACC)", "pass"),
    (f"def part(g):\n    g = g / ACC\n    return g\n{ALL}p.register_hook(part)", "pass"),
    (f"def by(k):\n    return lambda g: -g.neg().div(k)\n{ALL}p.register_hook(by(ACC))", "pass"),
    (f"def part(p):\n    p.grad /= ACC ** (n == 3)\n{ALL}p.register_post_accumulate_grad_hook(part)", "pass"),
]
OTHER = [
    ("", "size = sum(p.grad.norm() for p in net.parameters()); size /= n"),
    ("", f"total = 0\n        {ALL}total += p.grad.pow(2).sum().item()\n        total /= n"),
    ("def log(by):\n    for p in net.parameters():\n        g = p.grad.norm()\n        g /= by", "log(n)"),
    (f"{ALL}p.register_hook(lambda g: norms.append(g.norm() / 4))", "pass"),
    (f"{ALL}p.register_hook(norms.append)", "pass"),
    (f"def log(g):\n    norms.append(g.norm() / 4)\n{ALL}p.register_hook(log)", "pass"),
]


@pytest.mark.parametrize(("earlier", "before"), OWN)
def test_gradients_that_are_divided(earlier, before):
    assert not told(earlier, before=before)


@pytest.mark.parametrize(("earlier", "before"), OTHER)
def test_gradients_of_which_something_is_computed(earlier, before):
    assert told(earlier, before=before)


def test_what_is_left_may_be_stepped_for_in_the_next_cell():
    cell = LOOP.format(loss=f"{MEAN} / ACC", before="pass").replace("data:", "data[:10]:")
    (finding,) = findings_in(SETUP, f"n = 0\n{cell}", slug="accumulation-remainder")
    assert "no step of `opt` in this cell has used their gradients" in finding.message
