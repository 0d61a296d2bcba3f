"""Tables between small operands and a small result, and large tensors that are wanted."""

from typing import Any

import pytest

from tests.cells import a_notebook, findings_in
from tests.fakes import a_backward, a_graph, a_pattern, a_place, a_run, a_witness
from torch_inspector.pitfalls.memory.broadcast_blowup import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
a = torch.randn(200, 64, requires_grad=True)
b = torch.randn(300, 64, requires_grad=True)
"""
FOUND = {
    "squares": "d = ((a[:, None] - b[None]) ** 2).sum(-1)",
    "by unsqueeze and norm": "d = (a.unsqueeze(1) - b.unsqueeze(0)).norm(dim=2)",
    "absolute, behind a loss": "(a[:, None] - b).abs().sum(-1).min(1).values.mean().backward()",
    "itself": "diff = a[:, None] - a\nd = (diff * diff).mean(-1)\ndel diff",
    "a product": "((a[:, None] * b[None]).sum(-1).softmax(1) ** 2).mean().backward()",
    "largest": "d = (a[:, None] + b).exp().amax(dim=1).sum(1)",
    "in a function": "def far(x, y):\n    t = ((x[:, None] - y) ** 2).sum(-1)\n    t.mean().backward()\nfar(a, b)",
    "no history": "d = ((a.detach()[:, None] - b.detach()) ** 2).sum(-1)",
    "no gradients": "with torch.no_grad():\n    diff = a.unsqueeze(1) - b[None]\n    d = torch.norm(diff, dim=2)",
    "one side without history": "c = b.detach()\nd = ((a.unsqueeze(1) - c) ** 2).sum(dim=2)\nd.mean().backward()",
    "a function without gradients": (
        "@torch.no_grad()\ndef far(x, y):\n    return (x[:, None] - y).abs().sum(-1)\nd = far(a, b)"
    ),
    "an object that is called": (
        "class Far:\n    def __call__(self, x, y):\n        return (x[:, None] - y).abs().sum(-1).argmin(1)\n"
        "far = Far()\nd = far(a.detach(), b.detach())"
    ),
    "expanded": "d = (a[:, None].expand(200, 300, 64) * b[None].expand(200, 300, 64)).sum(-1)",
    "cosines": "nn.functional.cosine_similarity(a[:, None], b[None], dim=2).exp().mean().backward()",
    "a function of torch, no gradients": "with torch.no_grad():\n    d = torch.mul(a[:, None], b[None]).sum(2)",
    "a method, no gradients": "with torch.no_grad():\n    d = a[:, None].sub(b[None]).abs().sum(2)",
    "weighted, no gradients": "w = torch.randn(64)\nk = (torch.tanh(a.detach()[:, None] + b.detach()) * w).sum(-1)",
    "scaled, no gradients": "with torch.no_grad():\n    k = (((a[:, None] - b) / 3) ** 2).sum(-1)",
    "with a constant factor": "w = torch.randn(1, 300, 64)\nd = (a[:, None] * w).sum(-1)",
}
SILENT = {
    "matrix product": "d = a @ b.T",
    "cdist": "torch.cdist(a, b).mean().backward()",
    "the table is the result": "d = a[:, None] - b",
    "all terms of one loss": "((a[:, None] - b) ** 2).mean().backward()",
    "a layer reads it": "nn.Linear(64, 1)(torch.tanh(a[:, None] + b)).mean().backward()",
    "used twice": "t = (a[:, None] - b).pow(2)\nd = t.sum(-1) + t.amax(-1)",
    "cosines of pairs": "nn.functional.cosine_similarity(a, b[:200], dim=1).mean().backward()",
    "one side expanded": "t = torch.randn(200, 300, 64)\nd = (a[:, None].expand(200, 300, 64) * t).sum(-1)",
    "small": "d = ((a[:4, None] - b) ** 2).sum(-1)",
    "few": "d = ((a[:2, None] - torch.cat([b] * 120)) ** 2).sum(-1)",
    "one side is large already": "t = a.repeat(300, 1, 1)\nd = (t - a).pow(2).sum(-1)",
    "a constant of unknown size": "d = (a - torch.randn(300, 200, 64)).pow(2).sum(-1)",
    "made once, read twice": (
        "with torch.no_grad():\n    t = (a[:, None] - b) ** 2\n    d = t.sum(-1)\n    e = t.amax(-1)"
    ),
    "no history, one side is large already": "t = torch.randn(300, 200, 64)\nd = (t - t[0]).pow(2).sum(-1)",
    "no history, all terms": "with torch.no_grad():\n    d = ((a[:, None] - b) ** 2).mean()",
    "weighted, one side is large already": "t = torch.randn(300, 200, 64)\nd = ((t - t[0]).tanh() * t[0, 0]).sum(-1)",
    "small, weighted": "with torch.no_grad():\n    d = ((a[:4, None] - b) * 3).sum(-1)",
    "a bias": "t = torch.randn(300, 200, 64, requires_grad=True)\n(t + a[0]).relu().sum(-1).mean().backward()",
}


COSINES = """\
def contrast(z):
    n = len(z)
    sim = nn.functional.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=-1) / 0.5
    return sim.logsumexp(1).mean()
"""


def found(*cells):
    with a_notebook(min_bytes=0) as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [one for one in notebook.findings() if one[1] == "broadcast-blowup"]


@pytest.mark.parametrize("name", FOUND)
def test_tables_that_are_added_up(name):
    ((cell, _, line, severity),) = found(FOUND[name])
    assert (cell, severity) == (1, "hint")
    assert line is not None


@pytest.mark.parametrize("name", SILENT)
def test_tables_that_are_wanted_or_none(name):
    assert found(SILENT[name]) == []


def test_it_is_told_once_in_the_cell_that_made_it():
    assert len(found(FOUND["squares"], "1 + 1", "d.mean().backward()")) == 1
    assert len(found(FOUND["squares"], "1 + 1", "e = a.detach()")) == 1


def test_the_first_variable_is_named_and_bytes_decide():
    shapes = ((200, 300, 64), (200, 1, 64), (1, 300, 64), (200, 300))
    nodes = ("SumBackward1", "PowBackward0", "SubBackward0")
    table = a_pattern("blown-up", nodes=nodes, shapes=shapes, operands=("sum",), nbytes=80 << 20)
    near = a_graph("near", patterns=(table,), made_at=a_place(5), key=90)
    dist = a_graph("dist", patterns=(table,), made_at=a_place(4), key=80)
    (finding,) = check(a_run(a_backward(witness=a_witness(table)), after=[near, dist]))
    assert (finding.subject, finding.line, finding.severity) == ("dist", 4, "")
    assert "cdist" in finding.fix
    assert list(check(a_run(a_backward(witness=a_witness(table)), min_nbytes=1 << 30))) == []
    (finding,) = check(a_run(a_backward(witness=a_witness(table._replace(nbytes=9 << 20)))))
    assert (finding.line, finding.severity) == (2, "hint")


def test_a_function_is_told_once():
    function = "def far(x, y):\n    return ((x[:, None] - y) ** 2).sum(-1)"
    assert len(found(function, "d = far(a.detach(), b.detach())", "d = far(a.detach(), b.detach())")) == 1


DENSE = """\
class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.v = nn.Linear(64, 64), nn.Parameter(torch.randn(64))
    def forward(self, x):
        h = self.lin(x)
        pair = torch.tanh({})
        return (pair * self.v).sum(-1)
dense = Dense()"""
FAR = "def far(x, y):\n    return {}"


@pytest.mark.parametrize(
    ("function", "call", "line", "fix"),
    [
        (DENSE.format("h[:, None, :] + h[None, :, :]"), "d = dense(a)", 7, "(for part in h[:, None, :].split(64))"),
        (DENSE.format("h.unsqueeze(1) + h"), "d = dense(a)", 7, "(for part in h.unsqueeze(1).split(64))"),
        (FAR.format("((x[:, None] - y) ** 2).sum(-1)"), "d = far(a, b)", 2, "torch.cdist(x, y) gives"),
        (FAR.format("(x[:, None] * y[None]).sum(-1)"), "d = far(a, b)", 2, "product: x @ y.T, or"),
    ],
)
def test_it_speaks_of_the_line_in_the_function_in_its_own_names(function, call, line, fix):
    (finding,) = findings_in(SETUP, function, call, slug="broadcast-blowup", min_bytes=0)
    assert (finding.cell, finding.line) == (2, line)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(a[:, None] * b[None]).sum(-1)", "a @ b.T"),
        ("torch.tanh(a[:, None] * b[None]).sum(-1)", "in parts"),
        ("((a[:, None] - b[None]) ** 2).sum(-1)", "cdist"),
        ("((a[:, None] - b[None]).tanh() * w).sum(-1)", "in parts"),
    ],
)
def test_what_is_said_instead_is_the_same(text, wanted):
    cell = f"w = torch.randn(64)\nwith torch.no_grad():\n    d = {text}"
    (finding,) = findings_in(SETUP, cell, slug="broadcast-blowup", min_bytes=0)
    assert wanted in finding.fix


def test_similarities_of_all_pairs_are_named_where_they_are_made():
    cell = "loss = contrast(a)\nloss.backward()"
    (one,) = findings_in(SETUP, COSINES, cell, slug="broadcast-blowup", min_bytes=0)
    assert (one.cell, one.line) == (2, 3)
    assert one.message.startswith("`sim` in `contrast` went through")
    assert "F.normalize(z, dim=-1) @ F.normalize(z, dim=-1).T" in one.fix


BIAS = "def bias(p):\n    return (p[:, None] - p[None]).abs().mean(-1)"


WORDS = (
    "torch.cdist gives distances of all pairs without it (its square, p=1 for absolute differences): of both tensors"
)


@pytest.mark.parametrize(
    ("code", "line", "fix"),
    [
        ("z = b * 1\nd = ((a[None] - z[:, None]) ** 2).sum(-1)", 2, WORDS),
        ("d = ((a.unsqueeze(0) - b[:, None]) ** 2).sum(-1)", 1, WORDS),
        ("d = ((a[:, None] - b) ** 2).sum(-1)", 1, "torch.cdist(a, b) gives"),
        ("d = ((a.detach()[:, None] - b.detach()[:]) ** 2).sum(-1)", 1, "torch.cdist(a.detach(), b.detach())"),
        ("u, v = a.detach(), b.detach()\nd = ((u[:, None] - v) ** 2).sum(-1)", 2, "torch.cdist(u, v) gives"),
        ("d = (a[:, None] * b[None]).sum(-1)", 1, "a product that is summed is a matrix product: a @ b.T"),
        (
            "d = (a.detach() * 1)[:, None].mul((b.detach() * 1)[None]).sum(-1)",
            1,
            "a product that is summed is a matrix",
        ),
    ],
)
def test_another_function_that_is_written_alike_is_not_spoken_of(code, line, fix):
    cell = f"print(bias(torch.randn(5, 3)).shape)\n{code}"
    (finding,) = findings_in(SETUP, BIAS, cell, slug="broadcast-blowup", min_bytes=0)
    assert (finding.cell, finding.line) == (3, line + 1)
    assert finding.fix.startswith(fix)


def test_two_tables_that_are_turned_are_not_named_in_the_wrong_order():
    function = "def far(x, y):\n    return ((x[None] - y[:, None]) ** 2).sum(-1)"
    (finding,) = findings_in(SETUP, function, "d = far(a, b)", slug="broadcast-blowup", min_bytes=0)
    assert finding.fix.startswith(WORDS)


@pytest.mark.parametrize(("way", "severity"), [("(torch.tanh({}) * v)", "hint"), ("({} ** 2)", "warning")])
def test_weights_without_gradients_leave_no_other_way(way, severity):
    table = way.format("q[:, None] + q[None]")
    cell = f"v, q = torch.randn(64), torch.randn(520, 64)\nwith torch.no_grad():\n    s = {table}.sum(-1)"
    (finding,) = findings_in(SETUP, cell, slug="broadcast-blowup", min_bytes=0)
    assert finding.severity == severity


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("gap = p[:, None] - p[None]\n    return (gap ** 2).sum(-1)", "`gap` in `pairs` is a tensor of shape"),
        ("gap = ((p[:, None] - p[None]) ** 2).sum(-1)\n    return gap", "`gap` in `pairs` went through a tensor of"),
    ],
)
def test_the_table_itself_is_told_from_what_came_of_it(body, said):
    cell = f"def pairs(p):\n    {body}"
    (one,) = findings_in(SETUP, cell, "loss = pairs(a).mean()\nloss.backward()", slug="broadcast-blowup", min_bytes=0)
    assert one.message.startswith(said)


SPREAD = """
def far(x, y):
    n, m, d = x.size(1), y.size(1), x.size(2)
    x = x.unsqueeze(2).expand(-1, n, m, d)
    y = y.unsqueeze(1).expand(x.size(0), n, m, d)
    return torch.pow(x - y, 2).sum(3)
"""
SETS = "x, y = torch.rand(4, 60, 16), torch.rand(4, 90, 16)"


def test_operands_that_were_expanded_first():
    (finding,) = findings_in(SETUP, SETS, SPREAD, "d = far(x, y)", slug="broadcast-blowup", min_bytes=0)
    assert (finding.cell, finding.line) == (3, 6)
    assert "(4, 60, 1, 16) met (4, 1, 90, 16)" in finding.message
    spread = "p = x.unsqueeze(2).expand(-1, 60, 90, 16)\nq = y[:, None].expand(-1, 60, -1, -1)\n"
    (finding,) = findings_in(SETUP, SETS, f"{spread}d = (p - q).pow(2).sum(3)", slug="broadcast-blowup", min_bytes=0)
    assert "(4, 60, 1, 16) met (4, 1, 90, 16)" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "p = torch.rand(4, 60, 90, 16)\nd = (p - y[:, None].expand(-1, 60, 90, 16)).pow(2).sum(3)",
        "p = x.unsqueeze(2).repeat(1, 1, 90, 1)\nd = (p - y[:, None].expand(-1, 60, 90, 16)).pow(2).sum(3)",
        "p, q = x[:, :, None].expand(-1, 60, 90, 16), y[:, None].expand(-1, 60, 90, 16)\nd = p - q",
        "p = x[:, :1].expand(-1, 60, 16)\nd = (p - x).pow(2).sum(2)",
    ],
)
def test_operands_that_are_as_large_themselves(cell):
    assert not findings_in(SETUP, SETS, cell, slug="broadcast-blowup", min_bytes=0)


KERNEL = """
def kernel(s, t):
    n, m = len(s), len(t)
    {0} = t.unsqueeze(0).expand(n, m, 64)
    {1} = s[:, None].expand(n, m, 64)
    dist = (({0} - {1}) ** 2).sum(2)
    return (-dist).exp()
"""


@pytest.mark.parametrize(("names", "fix"), [("pq", "torch.cdist(s, t) gives"), ("ts", "torch.cdist gives")])
def test_the_line_of_a_function_in_which_spread_operands_meet_is_told(names, fix):
    cell = "loss = kernel(a, b).mean()\nloss.backward()"
    (finding,) = findings_in(SETUP, KERNEL.format(*names), cell, slug="broadcast-blowup", min_bytes=0)
    assert (finding.subject, finding.line, finding.cell) == ("dist", 6, 2)
    assert finding.message.startswith("`dist` in `kernel` went through a tensor of shape (200, 300, 64)")
    assert finding.fix.startswith(fix)


MAPS = """
m, k = torch.rand(60, 16, 24), torch.rand(40, 16, 24)
h, g = torch.rand(8, 60, 32), torch.rand(8, 70, 32)
"""


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("(m[:, None] * k[None]).sum((2, 3))", "torch.einsum('acd,bcd->ab', m, k)"),
        ("(m[:, None] * k).sum(dim=[-1, -2])", "torch.einsum('acd,bcd->ab', m, k)"),
        ("(m[:, None] * k[None]).sum(-1)", "torch.einsum('acd,bcd->abc', m, k)"),
        ("(h[:, :, None] * g[:, None]).sum(-1)", "torch.einsum('abd,acd->abc', h, g)"),
        ("((h[:, :, None] - g[:, None]) ** 2).sum(-1)", "torch.cdist(h, g)"),
        ("((m[:, None] - k[None]) ** 2).sum((2, 3))", "torch.cdist(m.flatten(1), k.flatten(1))"),
    ],
)
def test_tables_of_more_axes(cell, fix):
    (one,) = findings_in(SETUP, MAPS, f"out = {cell}", slug="broadcast-blowup", min_bytes=0)
    written = one.fix.replace('"', "'")
    assert written.startswith(fix)
    names: dict[str, Any] = {}
    exec(f"import torch\n{MAPS}\nout, new = {cell}, {fix}", names)  # noqa: S102  (the lines above)
    out, new = names["out"], names["new"]
    assert out.allclose(new**2 if "cdist" in fix else new, rtol=1e-3)


def test_the_mean_of_two_axes():
    cell = "out = ((m[:, None] - k[None]) ** 2).mean(dim=(2, 3))"
    (one,) = findings_in(SETUP, MAPS, cell, slug="broadcast-blowup", min_bytes=0)
    assert one.fix.startswith("go through")
    assert not findings_in(SETUP, MAPS, "out = (m[:, None] * k[None]).sum((0, 1))[0]", slug="broadcast-blowup")


TWO_WAYS = """\
def far(x, y, exact=False, n=1):
    TEST
        return torch.cdist(x, y)
    return ((x[:, None] - y) ** 2).sum(-1)
class Far:
    def __init__(self, exact):
        self.exact = exact
    def __call__(self, x, y):
        return far(x, y) if not self.exact else ((x[:, None] - y) ** 2).sum(-1)
limit = 100
x, y = a.detach(), b.detach()"""


@pytest.mark.parametrize(
    ("test", "call", "told"),
    [
        ("if not exact:", "far(x, y)", False),
        ("if not exact:", "far(x, y, exact=True)", True),
        ("if len(x) * len(y) > 50_000:", "far(x, y)", False),
        ("if len(x) * len(y) > 500_000:", "far(x, y)", True),
        ("if x.size(0) > 100 or y.ndim == 1:", "far(x, y)", False),
        ("if x.dim() == 3 or x.shape[0] > limit * 5:", "far(x, y)", True),
        ("if n == 1:", "far(x, y)", False),
        ("if n == 1:", "far(x, y, n=2)", True),
        ("if bool(x.max() > 0):", "far(x, y)", False),  # nobody knows
        ("if limit < 100:", "far(x, y)\nlimit = 0", False),  # it was given another value since
        ("if n == 1:", "Far(False)(x, y)", False),  # an object that is gone
        ("if n == 1:", "f = Far(True)\nd = f(x, y)", True),
        ("if n == 1:", "f = Far(False)\nd = f(x, y)", False),
    ],
)
def test_a_branch_that_may_not_have_run_is_not_told(test, call, told):
    found = findings_in(SETUP, TWO_WAYS.replace("TEST", test), f"d = {call}", slug="broadcast-blowup", min_bytes=0)
    assert bool(found) is told
