"""Old weights that an object, a dictionary or a global name keeps without a copy, compared with the weights."""

import pytest

from tests.cells import findings_in
from torch_inspector.facts import syntax
from torch_inspector.observe import anchors
from torch_inspector.observe.anchored import uses_in
from torch_inspector.observe.place import CodeFile

START = """
import copy
import torch
from torch import nn
class Place: pass
net, st, e, means = nn.Linear(4, 2), {}, Place(), {}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
def step(more=0):
    opt.zero_grad()
    (net(x).square().sum() + more).backward()
    opt.step()
"""
PENALTY = """
class Penalty:
    def __init__(self, model):
        self.model, self.old = model, {empty}
    def take(self):
        {take}
    def loss(self):
        return {loss}
pen = Penalty(net)
"""
PAIRS = "sum((p - o).square().sum() for p, o in zip({}.parameters(), {}))"
BY_NAME = "sum((p - {1}[n]).norm() for n, p in {0}.named_parameters())"
TRAIN = "pen.take()\nfor _ in range(3):\n    step(pen.loss())"


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is found must not depend on what else the machine does."""
    monkeypatch.setattr(anchors, "_TIME_S", 1.0)


def found(*cells):
    return findings_in(START, *cells, slug="state-dict-alias")


def penalty(take, loss=PAIRS, empty="[]"):
    return PENALTY.format(take=take, loss=loss.format("self.model", "self.old"), empty=empty)


@pytest.mark.parametrize(
    ("take", "loss", "fix"),
    [
        ("self.old = [p.data for p in self.model.parameters()]", PAIRS,
         "self.old = [p.data.clone() for p in self.model.parameters()]"),
        ("for p in self.model.parameters(): self.old.append(p.detach())",
         "sum(nn.functional.mse_loss(p, o) for p, o in zip({}.parameters(), {}))",
         "self.old.append(p.detach().clone())"),
        ("self.old = {n: p for n, p in self.model.named_parameters()}", BY_NAME,
         "self.old = {n: p.detach().clone() for n, p in self.model.named_parameters()}"),
    ],
)  # fmt: skip
def test_an_object_that_is_asked_in_each_turn(take, loss, fix):
    (finding,) = found(penalty(take, loss), TRAIN)
    assert (finding.subject, finding.severity, finding.cell) == ("pen.old", "warning", 2)
    assert finding.fix == f"{fix}  # what is kept then stays as it is"
    assert not found(penalty(take.replace(take.rpartition(": ")[2] if "append" in take else take, fix), loss), TRAIN)


@pytest.mark.parametrize(
    ("kept", "fill"),
    [
        ("e.old", "e.old = [p.data for p in net.parameters()]"),
        ("st['old']", "st['old'] = [p.detach() for p in net.parameters()]"),
        ("means", "for n, p in net.named_parameters():\n    means[n] = p.data"),
    ],
)
def test_a_field_an_entry_and_a_global_name(kept, fill):
    compared = (BY_NAME if kept == "means" else PAIRS).format("net", kept)
    for cells in (
        [fill, "for _ in range(3): step()", f"d = {compared}"],
        [fill, f"for _ in range(3): step({compared})"],
    ):
        (finding,) = found(*cells)
        assert (finding.subject, finding.cell) == (kept, 2)


def test_functions_that_fill_and_read_a_global_name():
    fill = "def take():\n    for n, p in net.named_parameters():\n        means[n] = p.data"
    (finding,) = found(f"{fill}\ndef loss():\n    return {BY_NAME.format('net', 'means')}", TRAIN.replace("pen.", ""))
    assert (finding.subject, finding.line, finding.fix[:26]) == ("means", 3, "means[n] = p.data.clone() ")


TAKE = "self.old = [p.data for p in self.model.parameters()]"


@pytest.mark.parametrize(
    "cells",
    [
        # Of another model, of one that is made anew, of what the function is given.
        [penalty(TAKE), "pen.take()\npen.model = copy.deepcopy(net)\nfor _ in range(3): step(pen.loss())"],
        [f"st['old'] = [p.data for p in net.parameters()]\nfor _ in range(2):\n    net = copy.deepcopy(net)\n"
         f"    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    step({PAIRS.format('net', 'st[chr(111)]')})\n"
         "    st['old'] = [p.data for p in net.parameters()]".replace("chr(111)", "'old'")],
        [penalty(TAKE).replace("loss(self)", "loss(self, model)").replace("zip(self.model", "zip(model"),
         "twin = copy.deepcopy(net)\n" + TRAIN.replace("loss()", "loss(twin)")],
        # A copy as soon as it matters, other memory, no steps between.
        [penalty(TAKE.replace("data", "data.clone()")).replace(", []", f", []\n        {TAKE}"),
         "for _ in range(3): step(pen.loss())"],
        [penalty(TAKE), TRAIN.replace("step(", "net.weight.data = net.weight.data.clone(); step(")],
        [f"for _ in range(3): step()\ne.old = [p.data for p in net.parameters()]\nd = {PAIRS.format('net', 'e.old')}"],
        # Not compared, or as a check.
        [penalty(TAKE, "sum(o.square().sum() for o in {1})"), TRAIN],
        ["e.old = [p.data for p in net.parameters()]\nfor _ in range(3): step()",
         "assert all(torch.equal(p, o) for p, o in zip(net.parameters(), e.old))"],
    ],
)  # fmt: skip
def test_what_is_no_alias_or_is_meant(cells):
    assert not found(*cells)


OVER = "for p, o in zip({}.parameters(), {})"


@pytest.mark.parametrize(
    "loss",
    [
        f"sum(((p - o) / 0.1).pow(2).sum() {OVER})",
        f"torch.cat([(p - o).flatten() {OVER}]).norm()",
        f"sum((p - o).abs().sum() {OVER})",
        f"sum((2 * (p - o) * (p - o)).sum() {OVER})",
        f"sum(torch.sum(torch.abs(p - o)) {OVER})",
        f"sum(torch.pow(p - o, exponent=2).sum() {OVER})",
        f"sum(torch.dot((p - o).flatten(), (p - o).flatten()) {OVER})",
    ],
)
def test_differences_that_are_measured(loss):
    assert found(penalty(TAKE, loss), TRAIN)
    assert not found(penalty(TAKE, loss), f"{TRAIN}\nassert not pen.loss()")


NAMED = (
    "total = 0\n        for p, o in zip(self.model.parameters(), self.old):\n            {}\n"
    "            total = total + {}\n        return total"
)


def named(given, added):
    return penalty(TAKE, "0").replace("return 0", NAMED.format(given, added))


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ("d = p - o", "(d ** 2).sum()"),
        ("d = (p - o).abs()", "d.sum()"),
        ("d = (p - o).view(-1)", "d @ d"),
        ("d = p - o; row = d.flatten()", "row.dot(row)"),
    ],
)
def test_a_difference_with_a_name(given, added):
    assert found(named(given, added), TRAIN)
    assert not found(named(given, added), f"{TRAIN}\nassert not pen.loss()")


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ("d = (p - o).abs()", "(0 if d.sum() > 0 else 1)"),
        ("d = (p - o).abs(); gap = d.sum(); self.moved = gap > 0", "gap"),
        ("d = (p - o).abs()", "d.max()"),
        ("d = p - o", "(d @ o.T).sum()"),
    ],
)
def test_a_named_difference_that_is_tested_or_no_measure(given, added):
    assert not found(named(given, added), TRAIN)


LOSS = "loss = net(x).square().mean() + 0.1 * pen.loss()\n    "
RISE = "pen.take()\nbest = 9e9\nfor _ in range(3):\n    step()\n    "


@pytest.mark.parametrize(
    "test",
    [
        "if loss.item() < best: best = loss.item()",
        "if torch.isnan(loss): break",
        "best = max(0, 1 - loss.item())",
        "k = loss.item()\n    if k < best: best = k",
    ],
)
def test_a_test_on_the_loss_asks_for_no_difference(test):
    loss = PAIRS.format("self.model", "self.old")
    assert found(penalty(TAKE, loss), RISE + LOSS + test)
    assert not found(penalty(TAKE, loss), RISE + LOSS.replace("net(x).square().mean()", "1e-8") + test)


@pytest.mark.parametrize("made", ["torch.optim.SGD([x], 0.1)", "Penalty(net)", "hand_out(pen)"])
def test_a_method_of_the_same_name_is_of_another_object(made):
    start = penalty(TAKE).replace("loss", "ask"), "def hand_out(one): return one"
    asked = f"other = {made}\nother.ask = lambda: 0\nk = other.ask()\nif k: print(k)"
    cells = *start, asked, TRAIN.replace("loss", "ask")
    assert bool(found(*cells)) is made.startswith("torch")


@pytest.mark.parametrize(
    ("loss", "cell"),
    [
        (f"all(torch.equal(p, o) {OVER})", "if not pen.loss(): raise RuntimeError"),
        (f"not all(torch.equal(p, o) {OVER})", "if pen.loss(): pen.take()"),
        (f"max((p - o).abs().max().item() {OVER})", "assert pen.loss() == 0"),
        (f"sum((p - o).square().sum() {OVER})", "assert pen.loss() == 0"),
        (f"sum((p - o).norm() {OVER}).item()", "gap = float(pen.loss())\n    if gap > 0: pen.take()"),
        (f"sum((p - o).norm() {OVER}) == 0", "print(pen.loss())"),
        (f"g\n    def gaps(self):\n        g = [(p - o).norm() {OVER}]\n        return max(g)", "print(pen.gaps())"),
        (f"0\n    @property\n    def gap(self):\n        return sum((p - o).norm() {OVER})", "assert not pen.gap"),
        (f"sum((0.1 * (p - o)).sum() {OVER})", "step(pen.loss())"),
    ],
)
def test_checks_in_functions_and_the_straight_through_idiom(loss, cell):
    assert not found(penalty(TAKE, loss), f"pen.take()\nfor _ in range(3):\n    step()\n    {cell}")


IN_ONE_FUNCTION = f"def loss(self):\n    pass\n{{}}\n    return {PAIRS.format('net', 'st')}"
MANY = {
    "comprehensions": f"    a{{0}} = {PAIRS.format('self.model', 'self.old')}",
    "names in a loop": "    for p, o in zip(net.parameters(), st['old']):\n        d{0} = p - o\n        d{0}.norm()",
    "of other things": "    for p, o in zip(one, two):\n        a{0} = (p - o).abs().sum()",
}


def nodes_read(monkeypatch, line, count):
    read = 0

    def walk(node, of=syntax.walk):
        nonlocal read
        nodes = list(of(node))
        read += len(nodes)
        return nodes

    code = IN_ONE_FUNCTION.format("\n".join(line.format(number) for number in range(count)))
    with monkeypatch.context() as patched:
        patched.setattr(syntax, "walk", walk)
        assert uses_in(CodeFile(1, 0, code))
    return read


@pytest.mark.parametrize("name", MANY)
def test_many_differences_take_as_long_as_each_of_them(monkeypatch, name):
    assert nodes_read(monkeypatch, MANY[name], 80) < 5 * nodes_read(monkeypatch, MANY[name], 20)
