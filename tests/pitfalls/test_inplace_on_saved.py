"""Values that were changed after autograd had saved them."""
# ruff: noqa: E501, ISC004 - programs of several lines, each as one string, so that the table can be read

import pytest

from tests.cells import a_notebook

START = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
lin, x = nn.Linear(4, 4), torch.rand(8, 4)
opt = torch.optim.SGD(lin.parameters(), lr=0.1)
"""
BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.tanh(self.lin(x))
        h *= 2
        return h


block = Block()
"""
FOUND = {
    "augmented": (["h = torch.sigmoid(lin(x))\nh += x\nh.mean().backward()"], 2, "h", False),
    "index": (["p = lin(x).softmax(-1)\np[:, 0] = 0\nloss = p.sum()\nloss.backward()"], 2, "p", False),
    "method": (["e = lin(x).exp()\ne.clamp_(max=2)\ne.sum().backward()"], 2, "e", False),
    "function": (["t = lin(x).tanh()\nF.relu_(t)\nt.sum().backward()"], 2, "t", False),
    "switch": (["t = lin(x).tanh()\nu = F.relu(t, inplace=True)\nu.sum().backward()"], 2, "t", False),
    "input of a product": (["scale = torch.ones(4)\ny = lin(x) * scale\nscale += 1\ny.sum().backward()"], 3, "scale", False),
    "in a module": ([BLOCK, "loss = block(x).pow(2).mean()\nloss.backward()"], 9, "h", True),
    "in a function": (["def scaled(z):\n    n = z.norm(dim=1, keepdim=True)\n    z /= n\n    return z", "u = scaled(lin(x).sigmoid())\nu.sum().backward()"], 3, "z", True),
    "layers": (["net = nn.Sequential(lin, nn.Sigmoid(), nn.ReLU(inplace=True))\nnet(x).sum().backward()"], 1, "", True),
    "a mask": (["def attend(x):\n    a = lin(x).softmax(-1)\n    a[a < 0.1] = 0\n    return a @ lin(x).T", "attend(x).sum().backward()"], 3, "a", True),
    "steps in time": (
        ["def unroll():\n    states = torch.zeros(5, 4)\n    for t in range(4):\n        states[t + 1] = torch.tanh(lin(states[t]))\n"
         "    return states", "unroll().sum().backward()"],
        4, "states", True,
    ),
    "in a loop": (
        ["def train():\n    for _ in range(3):\n        a = lin(x).exp()\n        a -= 1\n        loss = a.mean()\n"
         "        loss.backward()\n        opt.step()", "train()"],
        4, "a", False,
    ),
}  # fmt: skip
SILENT = {
    "not needed": "h = lin(x)\nh += x\nh.relu_()\nh.mean().backward()",
    "clone": "h = torch.sigmoid(lin(x))\nk = h.clone()\nk += x\nk.mean().backward()",
    "out of place": "h = torch.sigmoid(lin(x))\nh = h + x\nh.mean().backward()",
    "after backward": "h = torch.sigmoid(lin(x))\nh.mean().backward()\nwith torch.no_grad():\n    h += 1",
    "caught": "h = lin(x).exp()\nh += 1\ntry:\n    h.sum().backward()\nexcept RuntimeError:\n    pass",
}


def found(cells):
    with a_notebook() as notebook:
        for source in (START, *cells):
            run = notebook.run(source)
        return list(run.findings)


@pytest.mark.parametrize("name", FOUND)
def test_the_statement_is_found(name):
    cells, line, subject, probable = FOUND[name]
    (finding,) = found(cells)
    assert (finding.slug, finding.line, finding.subject) == ("inplace-on-saved", line, subject)
    assert ("probably" in finding.message) is probable


@pytest.mark.parametrize("layer", ["nn.Dropout(0.5, inplace=True)", "nn.ReLU6(inplace=True)"])
def test_a_layer_whose_node_has_another_name(layer):
    (finding,) = found([f"net = nn.Sequential(lin, nn.Sigmoid(), {layer})\nnet(x).sum().backward()"])
    assert (finding.line, finding.fix) == (1, layer.replace(", inplace=True", "").replace("inplace=True", ""))


@pytest.mark.parametrize(
    "code",
    [
        "s = torch.zeros(5, 4)\nfor t in range(4):\n    s[t + 1] = torch.tanh(lin(s[t]))\ns.sum().backward()",
        "s = torch.zeros(5, 4)\ns[0] = x[0]\nfor t in range(4):\n    s[t + 1] = s[t] + torch.tanh(lin(s[t]))\ns.sum().backward()",
        "s = torch.zeros(5, 4)\ns[0] = x[0]\nfor t in range(4):\n    was = s[t]\n    s[t + 1] = was + torch.tanh(lin(was))\ns.sum().backward()",
        "g = nn.Parameter(torch.ones(2))\nv = lin(x).clone()\nv[:, 0] = g[0] * v[:, 0] - 1\nv.sum().backward()",
        "y = lin(x).sigmoid()\ny[:, :2] = y[:, :2] * 2 - 1\ny.sum().backward()",
        "y, two = lin(x) + 0, nn.Linear(2, 1)\ns = two(y[:, :2])\ny[:, 1:] = y[:, 1:] * s.exp() + s\n(y.sum() + s.sum()).backward()",
        "y, two = lin(x) + 0, nn.Linear(2, 1)\ns = two(y[:, :2])\ny[:, 1:] *= s.exp()\n(y.sum() + s.sum()).backward()",
        "def f(y):\n    s = (y[:, :2] ** 2).sum(1, keepdim=True)\n    y[:, 2:] = y[:, 2:] * s\n    return y\nf(lin(x) + 0).sum().backward()",
    ],
)
def test_the_fix_is_right_where_a_part_is_written_and_another_read(code):
    (finding,) = found([code])
    lines = code.split("\n")
    line = lines[finding.line - 1]
    indent = line[: len(line) - len(line.lstrip())]
    before = [line] if "# before this line" in finding.fix else []
    lines[finding.line - 1 : finding.line] = [*(indent + one for one in finding.fix.split("\n")), *before]
    assert found(["\n".join(lines)]) == []


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    assert found([SILENT[name]]) == []


PYRAMID = """\
def levels(x):
    found = [lin(x).relu() for _ in range(3)]
    counts = {{"seen": 0}}
    counts["seen"] += 1
    for i in range(2, 0, -1):
        {}
    return found[0]
levels(x).sum().backward()"""


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("found[i - 1] += found[i].tanh()", "found[i - 1] = found[i - 1] + found[i].tanh()"),
        ("found[i - 1] *= found[i] + 1", "found[i - 1] = found[i - 1] * (found[i] + 1)"),
    ],
)
def test_one_of_a_list_of_tensors_in_a_function_that_has_ended(line, remedy):
    (finding,) = found([PYRAMID.format(line).replace('    counts["seen"] += 1\n', "")])
    assert (finding.subject, finding.fix, finding.line) == ("found[i - 1]", remedy, 5)
    assert "probably" in finding.message
    assert found([PYRAMID.format(remedy)]) == []


def test_of_two_such_statements_none_is_named():
    (finding,) = found([PYRAMID.format("found[i - 1] += found[i].tanh()")])
    assert finding.subject == ""


QUEUE = """
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("queue", torch.randn(4, 32))
        self.at = 0

    @torch.no_grad()
    def enqueue(self, keys):
        {write}

    def forward(self, x):
        q = self.lin(x)
        near = {read}
        self.enqueue(q.detach())
        return near


contrast = Contrast()
"""
STEP = "loss = contrast(x).pow(2).mean()\nloss.backward()"


@pytest.mark.parametrize(
    ("read", "copied"),
    [
        ("q @ self.queue", "q @ self.queue.clone()"),
        ("torch.mm(q, self.queue)", "torch.mm(q, self.queue.clone())"),
        ("q @ (self.queue / 0.1)", ""),
        ("F.linear(q, self.queue.T)", "F.linear(q, self.queue.clone().T)"),
    ],
)
@pytest.mark.parametrize(
    "write",
    ["self.queue[:, self.at:self.at + len(keys)] = keys.T", "self.queue[:, :8].copy_(keys.T)"],
)
def test_a_buffer_that_another_method_writes_into_is_named(write, read, copied):
    cells = [QUEUE.format(write=write, read=read), STEP]
    with a_notebook() as notebook:
        for source in (START, *cells):
            run = notebook.run(source)
    findings = list(run.findings) if run is not None else []
    if not copied:  # the quotient is saved, which nobody changes
        assert findings == []
        return
    (finding,) = findings
    assert (finding.slug, finding.subject, finding.line) == ("inplace-on-saved", "self.queue", 11)
    assert finding.fix == f"near = {copied}  # line 15"


OTHERS = {
    "a mask of another type": "pad = torch.zeros(8, dtype=torch.bool)\npad[4] = True",
    "numbers in another memory": "pad = torch.zeros(8, 4)\npad[4] = 1.0",
    "an array of another shape": "pad = torch.zeros(3)\npad[:2] += 1.0",
}
ATTEND = """\
def attend(x, pad):
    a = lin(x).softmax(-1)
    a[pad > 0] = 0.0
    return a"""


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_another_tensor_than_the_saved_one_is_no_culprit(name):
    given = "pad if pad.shape[0] == 8 else pad.new_zeros(8)"
    with a_notebook() as notebook:
        for source in (START, ATTEND):
            notebook.run(source)
        run = notebook.run(f"{OTHERS[name]}\nout = attend(x, {given})\nout.pow(2).sum().backward()")
    (finding,) = run.findings
    assert (finding.subject, finding.line, finding.cell) == ("a", 3, 2)
    assert finding.fix == "a = a.clone()  # before this line"


def test_a_name_that_stands_for_another_tensor_by_now_is_still_a_culprit():
    code = "p = lin(x).softmax(-1)\np[:, 0] = 0.0\nq = p.sum()\np = p.argmax(1)\nq.backward()"
    (finding,) = found([code])
    assert (finding.subject, finding.line) == ("p", 2)


LONG = "x[:, :1].expand(-1, 4)[:4].mean(0) * 0.5 + x[:, 1:2].expand(-1, 4)[:4].mean(0) * 0.25"


@pytest.mark.parametrize("terms", [1, 3])
def test_no_fix_is_cut(terms):
    value = " + ".join(["torch.tanh(lin(s[t]))", *[LONG] * terms])
    (finding,) = found([f"s = torch.zeros(5, 4)\nfor t in range(4):\n    s[t + 1] = {value}\ns.sum().backward()"])
    whole = f"s[t + 1] = {value.replace('lin(s[t])', 'lin(s[t].clone())')}"
    hoisted = "part = s[t].clone()  # before this line; in it, part in place of s[t]"
    assert finding.fix == (whole if terms == 1 else hoisted)
    assert found([f"s = torch.zeros(5, 4)\nfor t in range(4):\n    {whole}\ns.sum().backward()"]) == []


TWICE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.relu = {layer}

    def forward(self, x):
        out = self.relu(self.lin(x))
        {line}
        return out


block = Block()
"""


@pytest.mark.parametrize("layer", ["nn.ReLU(inplace=True)", "nn.ELU(inplace=True)"])
@pytest.mark.parametrize("line", ["out += x", "out.mul_(x)"])
def test_a_layer_in_place_is_not_blamed_for_what_is_changed_after_it(layer, line):
    (finding,) = found([TWICE.format(layer=layer, line=line), "block(x).sum().backward()"])
    assert (finding.line, finding.subject) == (10, "out")
    assert not found([TWICE.format(layer=layer, line=finding.fix), "block(x).sum().backward()"])


def test_a_layer_in_place_is_blamed_for_what_was_saved_before_it():
    block = TWICE.format(layer="nn.ReLU(inplace=True)", line="out = out + x")
    (finding,) = found([block.replace("self.lin(x)", "self.lin(x).tanh_()"), "block(x).sum().backward()"])
    assert (finding.line, finding.fix) == (6, "nn.ReLU()")
