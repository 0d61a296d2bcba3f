"""Numbers beyond float16: a mask of -1e9 that becomes minus infinity, and masks that are meant to be."""
# ruff: noqa: E501 - programs of several lines, each as one string, so that the table can be read

from time import process_time

import pytest

from tests.cells import findings_in
from torch_inspector.observe import zero_divided

SETUP = "import torch\nscores = torch.zeros(4, 4).half()\npad = torch.ones(4, 4)\npad[1:, 0] = 0"


def found(cell):
    return findings_in(SETUP, cell, slug="half-overflow", fails=False)


def test_a_mask_that_leaves_nothing_of_a_row():
    (finding,) = found("scores = scores + (pad * -1e9).half()\nweights = torch.softmax(scores, -1)")
    assert (finding.line, finding.subject, finding.severity) == (1, "scores", "error")
    assert "`weights` 4 nan" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "pad[:] = 0\npad[0, 0] = -1e9\nscores = scores + pad.half()\nweights = torch.softmax(scores, -1)",
        "scores = scores.masked_fill(pad.bool(), float('-inf'))\nweights = torch.softmax(scores, -1)",
        "scores = scores + (pad * -1e4).half()\nweights = torch.softmax(scores, -1)",
    ],
)
def test_masks_that_do_what_they_are_for(cell):
    assert not found(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "scores = scores.masked_fill(pad.bool(), -1e9)",
        "def hide(s):\n    return s.masked_fill(pad.bool(), -1e9)\nhide(scores)",
    ],
)
def test_a_number_that_torch_refuses(cell):
    (finding,) = findings_in(SETUP, cell, slug="half-overflow", fails=True)
    assert (finding.line, finding.subject) == (cell.count("\n") or 1, "s" if "def" in cell else "scores")
    assert finding.fix.startswith(f"torch.finfo({finding.subject}.dtype).min")


MODEL = """\
from torch import nn
class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        q = self.lin(x) * 50
        return torch.softmax(q @ q.T / 1e3, -1)
torch.manual_seed(0)
model = Scores().half()"""
CALL = "with torch.no_grad():\n    out = model({})"


def test_a_model_of_which_only_the_result_is_seen():
    cells = (MODEL, "x = (torch.ones(3, 4) * 400).half()", CALL.format("x"))
    (finding,) = findings_in(*("import torch", *cells), slug="half-overflow", fails=False)
    assert (finding.subject, finding.line, finding.severity) == ("out", 8, "error")
    assert "`q @ q.T` goes up to" in finding.message
    assert "(line 8 of cell 2)" in finding.message
    hidden = MODEL.replace("return torch", "q = nn.functional.gelu(q)\n        return torch")
    cells = (hidden, "x = (torch.ones(3, 4) * 400).half()", CALL.format("x"))
    (finding,) = findings_in(*("import torch", *cells), slug="half-overflow", fails=False)
    assert (finding.subject, finding.line, finding.severity) == ("out", 2, "warning")
    assert "`model` computed it in float16" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        ("x = torch.ones(3, 4).half()", CALL.format("x")),
        ("x = torch.ones(3, 4).half()\nx[0] = torch.nan", CALL.format("x")),
        ("x = torch.ones(3, 4).half()\nmodel.lin.weight.data[0] = torch.nan", CALL.format("x")),
    ],
)
def test_finite_results_and_nan_that_was_given(cells):
    assert not findings_in("import torch", MODEL, *cells, slug="half-overflow", fails=False)


def test_half_results_of_inference_mode_are_looked_at_twice() -> None:
    """Torch counts no changes of them, and asking for the count raises: that is no failure of the look."""
    start = "import torch\nwith torch.inference_mode():\n    a = torch.full((4,), 300.0, dtype=torch.float16)"
    again = "with torch.inference_mode():\n    b = a * 2"
    squared = "with torch.inference_mode():\n    c = a * a"
    assert not findings_in(start, again, "print(b)", slug="half-overflow", fails=False)
    (finding,) = findings_in(start, again, squared, slug="half-overflow", fails=False)
    assert finding.subject == "c"


HALVES = """\
import torch
torch.manual_seed(0)
lin = torch.nn.Linear(8, 8).half()
x = torch.randn(6, 8).half()
x[2] = 0"""
LOSS = "loss = lin({}).float().pow(2).mean()\nloss.backward()"
NO_OVERFLOW = {
    "0 / 0 before the model": f"emb = x / (x.norm(dim=1, keepdim=True) + 1e-15)\n{LOSS.format('emb')}",
    "nan in the data": f"x[0, 0] = torch.nan\n{LOSS.format('x')}",
    "the logarithm of 0": "p = lin(x).relu()\nloss = -p.log().mean()\nloss.backward()",
    "0 / 0 of what learns": "h = lin(x).relu() * 0\nloss = (h / h.sum(1, keepdim=True)).mean()\nloss.backward()",
}


@pytest.mark.parametrize("name", NO_OVERFLOW)
def test_nan_without_an_overflow_is_told_by_its_own_cause(name):
    (finding,) = findings_in(HALVES, NO_OVERFLOW[name], slug="nonfinite-loss", fails=False)
    assert "65,504" not in finding.message
    assert not findings_in(HALVES, NO_OVERFLOW[name], slug="half-overflow", fails=False)


def test_what_was_given_is_named_where_it_is_nan():
    (finding,) = findings_in(HALVES, NO_OVERFLOW["0 / 0 before the model"], slug="nonfinite-loss", fails=False)
    assert "`emb`, which was given to it, holds 8 nan" in finding.message


@pytest.mark.parametrize("code", ["h = lin(x) * 3e4 * x.new_ones(1)\nloss = torch.softmax(h @ h.T, -1).float().mean()"])
def test_nan_after_infinities_is_an_overflow(code):
    (finding,) = findings_in(HALVES, f"{code}\nloss.backward()", fails=False, slug="half-overflow")
    assert "65,504" in finding.message


MASK = "import torch\nlengths = torch.tensor([2, 0])\npad = torch.arange(3)[None] >= lengths[:, None]\n"
ATTEND = "a = torch.softmax(torch.ones(2, 3).half() + mask, -1)\nloss = a.sum()"


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        ("mask = (pad.float() * -1e15).half()", 1),
        ("mask = torch.zeros(2, 3).masked_fill(pad, -70000).to(torch.float16)", 1),
        ("mask = (pad.float() * -1e4).half()", 0),
        ("mask = (pad[:1].float() * -1e15).half()", 0),
        ("mask = torch.where(pad, float('-inf'), 0.0).half()", 0),
    ],
)
def test_a_mask_of_an_earlier_cell_that_leaves_nothing_of_a_row(mask, told):
    findings = findings_in(MASK + mask, ATTEND, fails=False)
    lost = [one for one in findings if one.slug == "half-overflow"]
    assert len(lost) == told
    assert all((one.cell, one.line, one.subject) == (1, 4, "mask") for one in lost)
    assert all(" became minus infinity" in one.message and one.message.endswith(" is nan.") for one in lost)


ROWS = MASK + "mask = (pad.float() * -1e15).half()"
WEIGHTS = "raw = torch.softmax(torch.ones(2, 3).half().requires_grad_() + mask, -1)\n"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ("a = torch.where(raw.isnan(), torch.zeros_like(raw), raw)", []),
        ("a = raw[lengths > 0]", []),
        ("a = raw[:1]", []),
        ("a = [raw[i, :n] for i, n in enumerate(lengths) if n]", []),
        ("def safe(v):\n    return torch.nan_to_num(v)\na = safe(raw)", []),
        ("def clear(v):\n    v[torch.isnan(v)] = 0\nb = raw.detach().clone()\nclear(b)", []),
        ("def twice(v):\n    return v * 2\na = twice(raw)", ["hint"]),
        ("a = raw[-1]\nb = raw[0]", ["hint"]),
        ("[raw[i, :n].mean() for i, n in enumerate(lengths) if n]", ["hint"]),
        ("a = torch.where(raw.isnan(), torch.zeros_like(raw), raw)\nloss = raw.sum()", ["error"]),
        ("loss = raw.detach().mean()", ["error"]),
        ("y = torch.full((2, 3), torch.nan).half()\nloss = (raw[:1] - y).mean()", []),
    ],
)
def test_rows_without_a_softmax_that_are_left_out(after, told):
    found = findings_in(ROWS, WEIGHTS + after, slug="half-overflow", fails=False)
    assert [one.severity for one in found] == told


@pytest.mark.parametrize(
    ("mask", "cell"),
    [
        ("triu(1)", "targets = torch.tensor([1.0, torch.nan]).half()\nw = torch.softmax(q + mask, -1)\nout = w @ q"),
        ("triu(1)", "spread = q[:1].std(0)\nw = torch.softmax(q + mask, -1)"),
        ("triu(1)", "q[2] = torch.nan\ngood = (q @ q)[[0, 1, 3]]\nprint(mask, torch.softmax(q, -1))"),
        ("triu(0)", "spread = q[:1].std(0)\nw = torch.softmax(q, -1)\nprint(mask)"),
        ("triu(0)", "print(torch.softmax(q, -1))\nspread = (q + mask).std(0)"),
        ("triu(0)", "q[2] = torch.nan\nloss = torch.softmax(q, -1).mean()\nprint(mask)"),
    ],
)
def test_nan_that_is_not_by_the_mask(mask, cell):
    start = f"import torch\nq = torch.randn(4, 4).half()\nmask = (torch.ones(4, 4).{mask} * -1e9).half()"
    assert not findings_in(start, cell, slug="half-overflow", fails=False)


ATTENTION = """\
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(3, 3)
    def forward(self, x, mask):
        return torch.softmax(self.query(x) + mask, -1)
net = Attention().half()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def attend(q, m):
    return torch.softmax(q + m, -1)
x = torch.ones(2, 3).half()"""
STEPS = (
    "for _ in range(3):\n    loss = {}.float().pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)


@pytest.mark.parametrize(
    ("cell", "severity"),
    [
        (STEPS.format("net(x, mask)"), "error"),
        (STEPS.format("net(x, mask)[lengths > 0]"), None),
        ("with torch.no_grad():\n    out = net(x, mask)", "hint"),
        ("loss = attend(x, mask).mean()", "error"),
        ("rows = []\nfor row in x:\n    rows.append(attend(row, mask))", "hint"),
    ],
)
def test_masks_that_models_and_functions_are_given(cell, severity):
    found = findings_in(f"{ROWS}\n{ATTENTION}", cell, slug="half-overflow", fails=False)
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_many_results_of_a_mask_cost_little():
    lines = "\n".join(f"a{i} = torch.softmax(x + mask, -1)\nb{i} = a{i}.mean()" for i in range(300))
    start = f"{ROWS}\nx = torch.zeros(2, 3).half()"
    begun = process_time()
    assert findings_in(start, lines, slug="half-overflow", fails=False)
    assert process_time() - begun < 4


DIVIDED = "import torch\nx = torch.randn(8, 4).half()\nlens = torch.tensor([3.0, 0, 2, 1]).half()\na, b = x.chunk(2, 1)"
OTHERS = (
    "import torch.nn.functional as F\nbig, low = (torch.randn(4, 8) * 600).half(), (torch.randn(4, 8) * 1e-4).half()"
)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("r = 1 / lens\ninv = torch.where(lens > 0, r, torch.zeros_like(r))", 0),
        ("q = x / (x - x).sum()", 0),
        ("q = x / (x * 0)\nw = q * 2", 0),
        ("rr = a / b.relu()\nrr2 = rr.nan_to_num(0, 0, 0)", 0),
        ("r = torch.stack([x[0], x[1]]) / lens", 0),
        ("r = lens.pow(-0.5)", 0),
        ("r = lens * 6e4", 1),
        ("r = (lens + 1) * 6e4 / (lens + 1e-3)", 1),
        ("small = lens * 1e-4\ns = small * small * 0.1\nr = 1 / s", 1),
        ("means = big / 100 + 1\nmeans /= lens[:, None]", 0),
        ("inv, n = 1 / lens, 4", 0),
        ("r, s = 1 / lens, 2 / lens", 0),
        ("p = q = 1 / lens", 0),
        ("inv: torch.Tensor = 1 / lens", 0),
        ("stats['inv'] = 1 / lens", 0),
        ("stats['inv'] = lens * 6e4", 1),
        ("inv = torch.true_divide(torch.ones(4).half(), lens)", 0),
        ("inv = torch.div(1, lens)", 0),
        ("inv = lens ** -1", 0),
        ("inv = torch.ones(4).half()\ninv.div_(lens)", 0),
        ("invs = []\nfor one in lens.split(2):\n    inv = 1 / one\n    invs.append(inv)", 0),
        ("invs = [1 / one for one in lens.split(2)]", 0),
        ("outs = []\nfor one in big.split(2):\n    outs.append(one @ one.T / one.shape[-1] ** 0.5)", 1),
        ("inv = 1 / lens\nlens[lens == 0] = 1", 0),
        ("inv = 1 / lens\npad = F.pad(inv, (0, 2))\nrolled = pad.roll(1)", 0),
        ("inv = 1 / lens\npadded = F.pad(\n    inv, (0, 2)\n)", 0),
        ("inv = 1 / lens\np = big.pow(2).sum(-1) - big.pow(2).sum(-1)", 1),
        ("inv = 1 / lens\nscores = (big @ big.T) * inv[:, None]", 1),
        ("r = 1 / lens\ne = big * big  # not scaled by r", 1),
        ("var = low.var(1, keepdim=True)\nn = (low - low.mean(1, keepdim=True)) / var", 1),
        ("n = (low - low.mean(1, keepdim=True)) / low.var(1, keepdim=True)", 1),
        ("var, n = torch.var_mean(low, 1)\nr = 1 / var", 1),
        ("counts = torch.bincount(torch.tensor([0, 2, 2])).half()\nr = 1 / counts", 0),
        ("same = (big[:1] - big[:1] + 1).repeat(4, 1)\nz = (same - 2) / same.std(0)", 0),
    ],
)
def test_a_division_by_zero_is_none(cell, told):
    start = f"{DIVIDED}\n{OTHERS}\ntorch.manual_seed(0)\nstats = {{}}"
    assert len(findings_in(start, cell, slug="half-overflow", fails=False)) == told


def test_what_nobody_had_the_time_to_judge_is_not_told(monkeypatch):
    monkeypatch.setattr(zero_divided, "_BUDGET_S", -1)
    for cell, told in (("inv = 1 / lens", 0), ("r = lens * 6e4", 1)):
        assert len(findings_in(DIVIDED, cell, slug="half-overflow", fails=False)) == told


TURNS = "def f(a, b):\n    {}for _ in range(3):\n        a = {}\n    return a\n"
TWICE = TURNS.format("", "a / b")
INSIDE = {
    "an argument": (TWICE + "r = f(big[0, :4], lens)", 0),
    "an argument without zeros": (TWICE + "r = f(lens * 2e4, (lens + 1) / 4)", 1),
    "of an earlier cell": (f"# %%\n{TWICE}# %%\nr = f(lens, lens)", 0),
    "what is computed inside": (TURNS.format("c = b * 2\n    ", "a + a / c") + "r = f(lens, lens)", 0),
    "a number": (TURNS.format("", "a * 90 / b") + "r = f(lens, 2)", 1),
    "a size": (TURNS.format("n = a.size(0)\n    ", "a * 9000 / n / len(b)") + "r = f(lens, lens)", 1),
    "one that calls another": (TWICE + "def g(a, b):\n    return f(a + 1, b)\nr = g(lens, lens)", 0),
    "one that hands on what has no zeros": (TWICE + "def g(a, b):\n    return f(a * 9000, b)\nr = g(lens, lens * 0 + 0.5)", 1),
    "put into a list": ("def f(a, b):\n    return a / b\nrs = []\nfor one in big[:2, :4]:\n    rs.append(f(one, lens))", 0),
    "a lambda": ("f = lambda a, b: a / b\nrs = [f(one, lens) for one in big[:2, :4]]", 0),
    "a method": ("class A:\n    k = 2\n    def __init__(self): self.n = 2\n    def f(self, a, b):\n        for _ in range(3): a = a / b\n        return a\nr = A().f(big[0, :4], lens)", 0),
    "a field": ("class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 2\n    def forward(self, a):\n        for _ in range(3): a = a * 90 / self.n\n        return a\nm = A()\nr = m(lens)", 1),
    "no division": (TURNS.format("", "a * b") + "r = f(lens * 9, lens * 99)", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_a_division_by_zero_inside_a_function_is_none(name):
    program, told = INSIDE[name]
    start = f"from torch import nn\n{DIVIDED}\n{OTHERS}"
    cells = [one for one in program.split("# %%\n") if one]
    assert len(findings_in(start, *cells, slug="half-overflow", fails=False)) == told
