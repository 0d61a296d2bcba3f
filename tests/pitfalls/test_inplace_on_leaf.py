"""Leaves that were to be changed while autograd recorded."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

import sys

import pytest

from tests.cells import findings_in

START = """
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(3, 2)
"""
FOUND = {
    "update by hand": (["def update(module):\n    for p in module.parameters():\n        p -= 0.1 * p", "update(net)"], 3, "p", "p -= 0.1 * p"),
    "element": (["net.weight[0, 0] = 3.0"], 1, "net.weight", "(2, 3)"),
    "method": (["x = torch.ones(3, requires_grad=True)\nx.clamp_(0, 0.5)"], 2, "x", "`x`"),
    "view": (["row = net.weight[0]\nrow += 1"], 2, "row", "a view of"),
    "in a class": (["class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = nn.Parameter(torch.ones(3))\n        self.scale.mul_(2)\n\n\nNet()"], 5, "self.scale", "self.scale"),
    "of another": (["def relu(values):\n    return F.relu(values, inplace=True)", "w = torch.rand(3, requires_grad=True)\nrelu(w)"], 2, "values", "`w`"),
}  # fmt: skip
SILENT = {
    "no_grad": "with torch.no_grad():\n    for p in net.parameters():\n        p -= 0.1",
    "data": "net.weight.data.fill_(1.0)",
    "init": "nn.init.zeros_(net.bias)",
    "result": "y = net(torch.rand(2, 3))\ny += 1\ny.sum().backward()",
    "caught": "try:\n    net.weight += 1\nexcept RuntimeError:\n    pass",
    "gradient": "net(torch.rand(2, 3)).sum().backward()\nnet.weight.grad.mul_(2)",
}  # fmt: skip


def found(cells):
    everything = findings_in(START, *cells)
    return [finding for finding in everything if finding.slug == "inplace-on-leaf"], everything


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


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tracebacks of Python 3.10 have lines only")
def test_the_statement_of_several_in_one_line():
    (finding,), _ = found(["p = torch.ones(3); p.requires_grad_(); p += 1"])
    assert finding.message.startswith("`p += 1` changes `p` in place")


PROMPT = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt, self.vision, self.head = nn.Parameter(torch.zeros(5, 4)), nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        words, seen = self.prompt, self.vision(x)
        {}
        return self.head({})
model = Net()"""
TRAINED = (
    "model(torch.rand(5, 3)).sum().backward()\n"
    "assert model.vision.weight.grad is not None and model.prompt.grad is not None"
)


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("words += seen.mean(0)", "words = words + seen.mean(0)"),
        ("words.mul_(seen)", "words = words.mul(seen)"),
        ("words[0] = seen[0]", "words = words.clone()  # before this line"),
        ("words[0].copy_(seen[0])", "words = words.clone()  # before this line"),
        ("self.prompt += seen", "changed = self.prompt + seen"),
        ("self.prompt[0] += seen[0]", "changed = self.prompt.clone()\nchanged[0] += seen[0]"),
    ],
)
def test_what_has_a_history_is_put_in_without_losing_it(line, fix):
    (finding,), _ = found([PROMPT.format(line, "words"), TRAINED])
    assert finding.fix.startswith(fix)
    mended = f"{finding.fix}\n{line}" if "before this line" in finding.fix else finding.fix
    used = "changed" if "changed" in finding.fix else "words"
    assert not findings_in(START, PROMPT.format(mended.replace("\n", "\n        "), used), TRAINED, fails=False)


@pytest.mark.parametrize("line", ["w -= 0.1 * w.grad", "w -= 0.1 * (w - v)", "w += torch.ones(3)"])
def test_an_update_by_hand_stays_outside_of_the_graph(line):
    start = "w, v = (torch.ones(3, requires_grad=True) for _ in range(2))\n(w * v).sum().backward()"
    (finding,), _ = found([f"{start}\n{line}"])
    assert finding.fix == f"with torch.no_grad():\n    {line}"


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("x += lin(b)", "changed = x + lin(b)  # use"),
        ("x[:, :2].copy_(lin(b)[:, :2])", "changed = x.clone()\nchanged[:, :2].copy_(lin(b)[:, :2])  # use"),
        ("x *= h.detach()", "with torch.no_grad():\n    x *= h.detach()"),
        ("y = 0; x += 1", "with torch.no_grad():\n    x += 1"),
        ("x += lin(b).detach()", "with torch.no_grad():\n    x += lin(b).detach()"),
        ("x -= (h * 2).detach() + h.clone().data", "with torch.no_grad():\n    x -= (h * 2).detach() + h.clone().data"),
        ("x *= int(h.argmax()) * (h > 0)", "with torch.no_grad():\n    x *= int(h.argmax()) * (h > 0)"),
        ("x += h * h.detach()", "changed = x + h * h.detach()  # use"),
        ("x[0] = h[0]", "changed = x.clone()\nchanged[0] = h[0]  # use"),
    ],
)
def test_what_a_layer_gives_has_a_history_and_what_is_cut_has_none(line, fix):
    start = "lin, b = nn.Linear(3, 3), torch.ones(3, 3)\nh, x = lin(b), torch.ones(3, 3, requires_grad=True)"
    (finding,), _ = found([start, line])
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "line",
    ["x[:] = lin(b)", "x.copy_(lin(b))", "x[...] = h", "x[:].copy_(h * 2)", "x.copy_(h.detach())", "start(x, h)"],
)
def test_a_leaf_gets_its_first_values_itself(line):
    start = (
        "lin, b = nn.Linear(3, 3), torch.ones(3, 3)\nh, x = lin(b), nn.Parameter(torch.zeros(3, 3))\n"
        "def start(x, h):\n    x.copy_(h)"
    )
    (finding,), _ = found([start, line])
    assert finding.fix.startswith("with torch.no_grad():\n    x")
    mended = (
        finding.fix
        if line != "start(x, h)"
        else f"{start[:-11]}\n    " + finding.fix.replace("\n", "\n    ") + f"\n{line}"
    )
    assert not findings_in(START, start, f"{mended}\nassert x.is_leaf and bool((x != 0).any())", fails=False)


@pytest.mark.parametrize("line", ["self.w[:] = self.lin(x)", "self.w.copy_(self.lin(x))"])
def test_what_each_batch_fills_is_a_copy(line):
    cell = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w, self.lin = nn.Parameter(torch.zeros(3, 3)), nn.Linear(3, 3)\n"
        f"    def forward(self, x):\n        {line}\n        return x @ self.w\nNet()(torch.ones(3, 3))"
    )
    (finding,), _ = found([cell])
    assert finding.fix.startswith("changed = self.w.clone()\nchanged")


def test_a_layer_that_is_made_gets_its_first_values():
    line = "self.scale[0] = self.lin(torch.ones(3))"
    cell = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.scale, self.lin = nn.Parameter(torch.ones(2, 3)), nn.Linear(3, 3)\n        {line}\nNet()"
    )
    (finding,), _ = found([cell])
    assert finding.fix == f"with torch.no_grad():\n    {line}"


IN_A_LOOP = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt, self.vision = nn.Parameter(torch.zeros(5, 3)), nn.Linear(3, 3)
    def forward(self, x):
        words = self.prompt
{}
model = Net()"""
TURNS = "        for i in range(len(x)):\n            {}\n        return {}"
BOTH = "model(torch.rand(5, 3)).sum().backward()\nassert model.prompt.grad.sum() == 0 and model.vision.bias.grad.sum() == 15"


def mended(fix, line):
    """The first statement before the loop, the others in place of the line."""
    first, _, rest = fix.partition("\n")
    assert first.endswith("  # before the loop in line 7")
    loop = TURNS.format(rest or line, "changed" if "changed" in first else "words")
    return IN_A_LOOP.format(f"        {first}\n{loop}")


@pytest.mark.parametrize("line", ["words[i] = self.vision(x[i])", "self.prompt[i] = self.vision(x[i])"])
def test_a_copy_that_a_loop_fills_is_made_before_it(line):
    (finding,), _ = found([IN_A_LOOP.format(TURNS.format(line, "words")), BOTH])
    assert not findings_in(START, mended(finding.fix, line), BOTH, fails=False)


SUM = "torch.manual_seed(0)\nlin, rows, x = nn.Linear(3, 3), torch.ones(4, 3), torch.ones(3, requires_grad=True)\n{}for row in rows:\n    {}"


@pytest.mark.parametrize(
    ("line", "anew"),
    [
        ("x += lin(row)", "y = y + lin(row)"),
        ("x.add_(lin(row))", "y = y + lin(row)"),
        ("x += lin(row) * x", "y = y + lin(row) * y"),
    ],
)
def test_what_a_loop_adds_up_begins_before_it(line, anew):
    (finding,), _ = found([SUM.format("", line)])
    first, rest = finding.fix.split("\n")
    compared = f"y = x.clone()\nfor row in rows:\n    {anew}\nassert changed.requires_grad and torch.equal(changed, y)"
    assert not findings_in(START, SUM.format(f"{first}\n", rest), compared, fails=False)


@pytest.mark.parametrize(
    "cell",
    [
        "for row in rows:\n    x[0] = lin(row)[0]\n    x.sum().backward()",
        "def learn(): x.sum().backward()\nfor row in rows:\n    x[0] = lin(row)[0]\n    learn()",
        "for row in rows:\n    x = torch.ones(3, requires_grad=True)\n    x[0] = lin(row)[0]",
        "for x in [torch.ones(3, requires_grad=True)]:\n    x[0] = lin(rows)[0, 0]",
    ],
)
def test_a_copy_stays_in_a_loop_whose_turns_have_each_their_own(cell):
    start = "lin, rows, x = nn.Linear(3, 3), torch.ones(4, 3), torch.ones(3, requires_grad=True)"
    (finding,), _ = found([start, cell])
    assert finding.fix.startswith("changed = x.clone()\nchanged[0] = lin")
