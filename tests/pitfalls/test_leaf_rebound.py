"""Names that lost their leaf."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import ast
import time

import pytest

from tests.cells import findings_in
from torch_inspector.observe.loop_variables import own_updates

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x, y = torch.rand(20, 3), torch.rand(20)
w = torch.zeros(3, requires_grad=True)
"""
MOVED = "for _ in range(3):\n    (x @ v).sum().backward()\n    v = (v - 0.1 * v.grad.sign()).detach().requires_grad_()"
ATTACK = (
    "v = torch.rand(20, 3)\nfor _ in range(3):\n    {}\n    (v @ w).sum().backward()\n"
    "    v = (v + 0.01 * v.grad.sign()).clamp(0, 1)"
)
FOUND = {
    "made anew outside the loop only": ([ATTACK.format("pass").replace("for", "v = v.detach().requires_grad_()\nfor")], 6, "v", "(line 6)"),
    "update by hand": (["for _ in range(3):\n    loss = (x @ w - y).pow(2).mean()\n    loss.backward()\n    w = w - 0.1 * w.grad\n    w.grad.zero_()"], 4, "w", "`w = w - 0.1 * w.grad` (line 4)"),
    "under no_grad": (["for _ in range(3):\n    loss = (x @ w - y).pow(2).mean()\n    loss.backward()\n    with torch.no_grad():\n        w = w - 0.1 * w.grad"], 5, "w", "needs no gradient"),
    "in a function": (["def fit(weight):\n    for _ in range(3):\n        (x @ weight - y).pow(2).mean().backward()\n        weight = weight - 0.1 * weight.grad\n    return weight", "fit(w)"], 4, "weight", "of cell"),
    "attribute": (["class Model:\n    def __init__(self):\n        self.w = torch.zeros(3, requires_grad=True)\n\n    def step(self):\n        (x @ self.w - y).pow(2).mean().backward()\n        self.w = self.w - 0.1 * self.w.grad\n\n\nmodel = Model()", "for _ in range(2):\n    model.step()"], 7, "self.w", "self.w"),
    "scaled when made": (["v = torch.rand(3, requires_grad=True) * 0.1\nopt = torch.optim.SGD([v], lr=0.1)"], 1, "v", "no leaf"),
    "made in another cell, read where it fails": (["v = torch.rand(3, requires_grad=True) * 0.1", "(x @ v).sum().backward()\nwith torch.no_grad():\n    v -= 0.1 * v.grad"], 1, "v", "`v = torch.rand(3, requires_grad=True) * 0.1` (line 1 of cell"),
    "moved when made, failed in the first turn": (["v = torch.rand(3, requires_grad=True).clamp(0.1, 0.9)", MOVED], 1, "v", "(line 1 of cell"),
    "moved when made, in a function": (["def attack():\n    v = torch.rand(3, requires_grad=True).clamp(0.1)\n    " + MOVED.replace("\n", "\n    "), "attack()"], 2, "v", "(line 2 of cell"),
    "computed, failed in the first turn": (["v = w + 1", MOVED], 3, "v", "computed from other tensors"),
    "another cell": (["w = w + 1", "w.sum().backward()\nprint(w.grad)"], 1, "w", "`w = w + 1`"),
    "computed for an optimizer": (["z = w.exp()\nopt = torch.optim.Adam([z])"], 2, "z", "leaves only"),
}  # fmt: skip
SILENT = {
    "in place": "for _ in range(3):\n    (x @ w - y).pow(2).mean().backward()\n    with torch.no_grad():\n        w -= 0.1 * w.grad\n    w.grad = None",
    "activation": "h = x * w\nh = h.tanh()\nh.sum().backward()\nprint(w.grad)",
    "kept": "h = x * w\nh = h.tanh()\nh.retain_grad()\nh.sum().backward()\nprint(h.grad)",
    "made anew": "for _ in range(3):\n    (x @ w - y).pow(2).mean().backward()\n    w = (w - 0.1 * w.grad).detach().requires_grad_()",
    "read before": "w.sum().backward()\nprint(w.grad)\nw = w * 2",
    "asked": "w = w * 2\nw.sum().backward()\nprint(w.is_leaf)",
    "a number": "grad = 1.0\ngrad = grad * 2\nprint(grad)",
    "functional": "def adapt(w):\n    (g,) = torch.autograd.grad((x @ w - y).pow(2).mean(), w, create_graph=True)\n    w = w - 0.1 * g\n    return (x @ w - y).pow(2).mean()\n\n\nadapt(w).backward()\nprint(w.grad)",
    "made anew in each turn": ATTACK.format("v = v.detach().requires_grad_(True)"),
    "made anew as a copy": ATTACK.format("v = v.detach().clone(); v.requires_grad = True"),
    "made anew as a variable": ATTACK.format("v = torch.autograd.Variable(v.data, requires_grad=True)"),
    "made anew from the data": "u = torch.rand(3)\n" + ATTACK.format("v = u.clone(); v.requires_grad_()"),
    "one step from a copy": "v = x.clone().requires_grad_()\n(v @ w).sum().backward()\nv = v + 0.1 * v.grad.sign()",
    "made anew before it is read": "h = w * 2\nh = h.detach().requires_grad_()\nh.sum().backward()\nprint(h.grad)\nh = h * 3",
    "another none": "class Thing:\n    grad = None\n\n\nthing = Thing()\ntry:\n    thing.grad.zero_()\nexcept AttributeError:\n    pass",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "leaf-rebound"], everything


KEPT = "h = w * 2\n{}h.retain_grad()\nother = torch.ones(3, requires_grad=True)\nother.sum().backward()\n"


@pytest.mark.parametrize("again", ["", "h = h.tanh()\n"])
def test_a_gradient_that_was_asked_for_is_empty_for_another_cause(again):
    assert found([KEPT.format(again) + "print(h.grad.norm())"])[0] == []


@pytest.mark.parametrize("name", FOUND)
def test_found_with_names(name):
    cells, line, subject, mentions = FOUND[name]
    (finding,), everything = found(cells)
    assert (finding.line, finding.subject) == (line, subject)
    assert mentions in finding.message
    assert [one.slug for one in everything if one.severity == "error" and one is not finding] == []


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]])[0] == []


NET = """\
lin, others = nn.Linear(3, 1), nn.Linear(3, 1)
def update(model, lr=0.1):
    with torch.no_grad():
        {}
class Trainer:
    def move(self, params):
        {}
trainer = Trainer()"""
LOSS = "lin(x).pow(2).mean().backward()\n"
IDLE = {
    "at the top": "for p in lin.parameters():\n    p = p - 0.1 * p.grad",
    "under no_grad": "with torch.no_grad():\n    for p in lin.parameters():\n        p = p - 0.1 * p.grad",
    "with names": "for name, p in lin.named_parameters():\n    p = p - 0.1 * p.grad if p.grad is not None else p - 0",
    "a list": "for p in [lin.weight, lin.bias]:\n    p = p.sub(0.1 * p.grad)",
    "pairs": "for p, g in zip(lin.parameters(), [q.grad for q in lin.parameters()]):\n    p = p - 0.1 * g",
    "groups": "for group in [{'params': lin.parameters()}]:\n    for p in group['params']:\n        p = p - p.grad",
    "another dress": "for p in lin.parameters():\n    p = nn.Parameter(p - 0.1 * p.grad)",
}
USED = {
    "in place": "with torch.no_grad():\n    for p in lin.parameters():\n        p -= 0.1 * p.grad",
    "by a method": "with torch.no_grad():\n    for p in lin.parameters():\n        p = p.sub_(0.1 * p.grad)",
    "data": "for p in lin.parameters():\n    p.data = p.data - 0.1 * p.grad",
    "collected": "fast = []\nfor p in lin.parameters():\n    p = p - 0.1 * p.grad\n    fast.append(p)",
    "measured": "far = 0\nfor p in lin.parameters():\n    p = p - p.grad\n    far += float(p.norm())",
    "written back": (
        "for p, q in zip(lin.parameters(), others.parameters()):\n    p = p - 0.1 * p.grad; q.data.copy_(p)"
    ),
    "other names": "for p in lin.parameters():\n    step = p - 0.1 * p.grad",
    "numbers": "for p in [1.0, 2.0]:\n    p = p - 1",
    "read at the top of an inner loop": (
        "for b in x.split(10):\n    for _ in range(3):\n        b = b.detach().requires_grad_()\n"
        "        lin(b).sum().backward()\n        b = b + 0.1 * b.grad.sign()"
    ),
    "an inner while": (
        "for b in x.split(10):\n    k = 0\n    while k < 3:\n        k += 1\n        b = b.detach().requires_grad_()\n"
        "        lin(b).sum().backward()\n        b = b - 0.1 * b.grad"
    ),
    "read after the loop": (
        "hist = []\nfor b in x.split(10):\n    b = b.detach().requires_grad_()\n"
        "    lin(b).sum().backward()\n    b = b + 0.1 * b.grad\nhist.append(b)"
    ),
    "read in the next turn of an outer loop": (
        "for k in range(2):\n    if k:\n        print(p.norm())\n    for p in lin.parameters():\n        p = p - 0.1 * p.grad"
    ),
}


@pytest.mark.parametrize("name", IDLE)
def test_updates_of_the_variable_of_a_loop(name):
    (finding,), _ = found([NET.format("pass", "pass"), LOSS + IDLE[name]])
    assert (finding.cell, finding.subject) == (2 + 1, "p")
    assert "stays as it is" in finding.message


@pytest.mark.parametrize("name", USED)
def test_what_a_loop_computes_and_uses(name):
    assert found([NET.format("pass", "pass"), LOSS + USED[name]])[0] == []


def test_other_reads_of_the_name_and_what_the_fix_writes_into():
    after = "\nfor p in lin.parameters():\n    p.grad = None\ntotal = sum(p.numel() for p in lin.parameters())"
    assert len(found([NET.format("pass", "pass"), LOSS + IDLE["at the top"] + after])[0]) == 1
    batches = "for b in x.split(10):\n    b.requires_grad_()\n    lin(b).sum().backward()\n    b = b + 0.1 * b.grad"
    (finding,), _ = found(
        [NET.format("pass", "pass"), batches.replace("b.requires_grad_()", "b = b.detach().requires_grad_()")]
    )
    assert "copy_" not in finding.fix
    assert "+=" not in finding.fix


@pytest.mark.parametrize("many", ["    p = p - 0.1 * p.grad\n" * 1200, "    f = lambda: q\n    p = p - p.grad\n" * 700])
def test_many_updates_are_read_in_time(many):
    tree, begun = ast.parse("for p in ps:\n" + many), time.process_time()
    assert len(own_updates(tree)) == many.count("p = ")
    assert time.process_time() - begun < 1


def test_updates_in_functions_that_are_called():
    loop = "for p in model.parameters(): p = p - lr * p.grad"
    method = "for p in params: p = p - 0.1 * p.grad"
    (finding,), _ = found([NET.format(loop, "pass"), LOSS + "update(lin)"])
    assert (finding.cell, finding.fix) == (2, "p -= lr * p.grad  # in place")
    assert found([NET.format(loop, "pass"), LOSS])[0] == []
    assert len(found([NET.format("pass", method), LOSS + "trainer.move(lin.parameters())"])[0]) == 1
