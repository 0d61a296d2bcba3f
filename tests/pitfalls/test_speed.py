"""Loops that do one by one, or again and again, what could be done at once."""

import gc
from typing import Any

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
x, y, m = torch.randn(3000), torch.randn(3000), torch.randn(60, 60)
k, wide = torch.randint(0, 5, (3000,)), torch.randint(0, 60, (60, 60))
vocab = [f"w{n}" for n in range(60)]
names = dict(enumerate(vocab))
net = nn.Linear(1, 4)
loader = DataLoader(TensorDataset(x.view(-1, 1)), batch_size=10)
"""


IN_A_FUNCTION = """def f(a, b):
    r = torch.empty(len(a))
    for i in range(len(a)):
        r[i] = a[i]
    return r
z = f(x, y)
"""


PADDED = """def pad(a, n):
    b = torch.zeros(a.shape[0] + 2 * n, a.shape[1] + 2 * n)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[n + i][n + j] = a[i][j]
    return b
"""
COUNTED = """def counted(p, t, c):
    p = p.flatten()
    t = t.flatten()
    c = c.clone()
    for i in range(len(p)):
        if p[i] == 1 and t[i] == 1:
            c[0] += 1 / len(p)
        elif p[i] == 1:
            c[1] += 1 / len(p)
    return c
"""
COUNTS = """def counts(true, pred):
    c = torch.zeros(5, 5, dtype=torch.long)
    for t, p in zip(true.view(-1), pred.view(-1)):
        c[t.long(), p.long()] += 1
    return c
"""


EDGES = """def dense(e, n):
    adj = torch.zeros(n, n)
    for t in {}:
        {}
    return adj
edges = torch.randint(0, 300, (2, 1500))
a = dense(edges, 300)"""
BY_NUMBER = "range(e.shape[1])"


@pytest.fixture(autouse=True)
def _no_pause():
    """A full collection in the middle of a look would use up its time."""
    gc.disable()
    yield
    gc.enable()


def told(*cells, slug):
    with a_notebook(min_bytes=0) as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert notebook.errors == [None] * (len(cells) + 1)
        found = [finding for run in notebook.runs if run for finding in run.findings if finding.slug == slug]
    return [(finding.line, finding.subject, finding.fix.partition("  #")[0]) for finding in found]


def visits(*cells):
    return told(*cells, slug="python-loop-over-tensor")


def growths(*cells):
    return told(*cells, slug="cat-grows-in-loop")


@pytest.mark.parametrize(
    ("cell", "line", "subject", "fix"),
    [
        ("total = 0\nfor i in range(len(x)):\n    total += x[i]", 2, "x", "x.sum()"),
        ("total = 0\nfor v in x:\n    total = total + v.item()", 2, "x", None),
        ("s = sum(x)", 1, "x", "x.sum()"),
        ("s = sorted(x)", 1, "x", "x.sort().values"),
        ("values = [v.item() for v in x]", 1, "x", "x.tolist()"),
        ("values = [x[i].item() for i in range(len(x))]", 1, "x", "x.tolist()"),
        ("values = [[v.item() for v in row] for row in m]", 1, "m", "m.tolist()"),
        ("total = sum(sum(v.item() for v in row) for row in m)", 1, "m", None),
        ("values = [[int(v) for v in row] for row in wide]", 1, "wide", "wide.tolist()"),
        ("t = [[vocab[i] for i in row] for row in wide]", 1, "wide",
         "[[vocab[i] for i in row] for row in wide.tolist()]"),
        ("t = [[names[int(i)] for i in row] for row in wide]", 1, "wide",
         "[[names[i] for i in row] for row in wide.tolist()]"),
        ("values = []\nfor v in x:\n    values.append(v)", 2, "x", "list(x.unbind())"),
        ("values = []\nfor v in x:\n    values.append(float(v))", 2, "x", "x.tolist()"),
        ("n = 0\nfor a, b in zip(x, y):\n    if a > b:\n        n += 1", 2, "x", None),
        ("best = x[0]\nfor i, v in enumerate(x):\n    if v > best:\n        best = v", 2, "x", None),
        ("o = torch.zeros(60, 60)\nfor i in range(60):\n  for j in range(60):\n    o[i, j] = m[i][j]", 2, "m", None),
        ("out = torch.empty(60)\nfor i in range(60):\n    out[i] = max(m[i])", 2, "m", "m.amax(-1)"),
        (IN_A_FUNCTION, 3, "a", None),
        ("rows, sums = torch.randn(1000, 3), []\nfor row in rows:\n    sums.append(row.sum())", 2, "rows", None),
        ("d = torch.ones(60, 60)\nfor i in range(60):\n  for j in range(60):\n    d[i, j] = m[i] @ m[j]", 2, "m", None),
        ("d = [torch.dist(m[i], m[j]) for i in range(60) for j in range(60)]", 1, "m", None),
        ("total = 0\nfor row in m:\n    for v in row:\n        total += float(v)", 2, "m", None),
        ("n = [0] * 9\nfor row in m:\n    for v in row:\n        n[min(int(abs(v)), 8)] += 1", 2, "m", None),
        (f"{PADDED}p = [pad(one, 1) for one in torch.ones(2, 40, 40)]", 3, "a", None),
        (f"{PADDED.replace('[n + i][n + j]', '[1 + i, 1 + j]')}p = pad(m, 1)", 3, "a", None),
        (f"{COUNTED}c = counted(torch.randint(0, 2, (60, 60)), torch.ones(60, 60), torch.zeros(2))", 5, "p", None),
        ("c = torch.zeros(5, 5)\nfor t, p in zip(k.view(-1), k.view(-1)):\n    c[t, p] += 1", 2, "k", None),
        (f"{COUNTS}c = counts(k, k)", 3, "c", "c += torch.bincount(true * 5 + pred, minlength=25).view(5, 5)"),
    ],
)  # fmt: skip
def test_loops_over_elements(cell, line, subject, fix):
    ((at, name, said),) = visits(cell)
    assert at == line
    assert subject in (None, name)
    assert fix is None or said == fix


@pytest.mark.parametrize("row", ["m:\n    row = row.tolist()", "m.tolist():"])
def test_rows_that_are_numbers_of_python(row):
    assert visits(f"total = 0\nfor row in {row}\n    for v in row:\n        total += v") == []


@pytest.mark.parametrize(
    "cell",
    [
        "r = 0\nfor v in x:\n    r = 0.9 * r + v",
        "for i in range(1, 3000):\n    x[i] = x[i - 1] * 0.5 + x[i]",
        "losses = torch.zeros(2000)\nfor e in range(2000):\n    losses[e] = net(x[:1].view(1, 1)).sum().item()",
        "for i in range(3000):\n    print(x[i].item())",
        "for i in range(3000):\n    if x[i] > 0.5:\n        break",
        "rows = torch.randn(2000, 3)\nfor row in rows:\n    net(row[:1])",
        "rows, all_rows = torch.randn(1000, 3), torch.randn(2000, 3)\nnear = [(all_rows - row).sum(1) for row in rows]",
        "rows = torch.randn(1000, 600)\nsums = []\nfor row in rows:\n    sums.append(row.sum())",
        "h = torch.zeros(3)\nw = torch.randn(1000, 3)\nfor t in range(1000):\n    h = torch.tanh(w[t] + h)",
        "for i in range(100):\n    x[i].item()",
        "def sum(values):\n    return 0\ns = sum(x)",
        "w = torch.zeros(1, requires_grad=True)\nfor i in range(1000):\n    ((w * x[i] - y[i]) ** 2).backward()",
        "names = dict(enumerate('abc'))\nfor i in range(3000):\n    names.get(int(x[i]))",
        "n = torch.tensor(3000)\nfor i in range(n):\n    pass",
        f"{PADDED}one = m\np = [pad(one, 1) for one in torch.ones(2, 3, 3)]",
        "values = [[v for v in row] for row in m.tolist()]",
        "parts = [[p for p in row] for row in torch.rand(40, 50, 8, 8)]",
        "imgs = torch.rand(40, 50, 8, 8)\nparts = [[p for p in row] for row in imgs]\nrows = [p for p in imgs[0]]",
        "grown = torch.rand(40, 50, requires_grad=True)\ncells = [[v for v in row] for row in grown]",
        "whole = [[int(v) for v in row] for row in m]\nreal = [[float(v) for v in row] for row in wide]",
        "values = [[v.item() for v in row] for row in m.view(60, 60, 1)]",
        "bits = [[int(v) for v in row] for row in wide > 3]\nt = [[names.get(i, 0) for i in row] for row in wide]",
        "t = [[vocab[i] + str(len(row)) for i in row] for row in wide]",
        "row = torch.rand(4000)\nlists = [[1, 2], [3]]\nt = [[v * 2 for v in row] for row in lists]",
        "h = torch.randn(40, 4000)\nmeans = [[part.mean() for part in row.split(2000)] for row in h]",
    ],
    ids=[
        "decay",
        "recurrence",
        "model",
        "print",
        "break",
        "rows",
        "whole",
        "long",
        "steps-in-time",
        "few",
        "own",
        "steps",
        "other",
        "bound",
        "hidden",
        "numbers",
        "parts made there",
        "parts",
        "gradient",
        "other types",
        "one deeper",
        "truth values",
        "row twice",
        "row of lists",
        "long parts",
    ],
)
def test_other_loops(cell):
    assert visits(cell) == []


@pytest.mark.parametrize(
    ("loop", "turn", "fix"),
    [
        (BY_NUMBER, "i, j = e[0, t], e[1, t]\n        adj[i, j] = 1.0", "i, j = (e[0, :], e[1, :])\nadj[i, j] = 1.0"),
        (BY_NUMBER, "i, j = e[0, t].item(), e[1, t].item()\n        adj[i][j] = 1.0", None),
        (BY_NUMBER, "i, j = int(e[0, t]), int(e[1, t])\n        adj[i, j] += 1.0", None),
        (BY_NUMBER, "i, j = e[:, t]\n        adj[i, j] = 1.0", None),
        (BY_NUMBER, "i, j = e[:, t].tolist()\n        adj[i, j] = 1.0", None),
        ("e.t()", "adj[t[0], t[1]] = 1.0", None),
    ],
)
def test_places_that_a_tensor_says(loop, turn, fix):
    found = visits(EDGES.format(loop, turn))
    assert len(found) == 1
    assert fix in (None, found[0][2])


PLACES = """import torch
n, k = 600, 4
torch.manual_seed(0)
x, y, w = torch.randn(n), torch.randn(n), torch.randn(n, k)
out, rows, table, turned = torch.zeros(n), torch.zeros(n, k), torch.zeros(n, n), torch.zeros(k, n)
e = torch.randint(0, n, (2, n))
"""


@pytest.mark.parametrize(
    ("turn", "fix"),
    [
        ("out[i] = x[i]", "out[:] = x[:]"),
        ("rows[i, :] = w[i, :]", "rows[:, :] = w[:, :]"),
        ("rows[i] = w[i]; out[i] = y[i]", "rows[:] = w[:]\nout[:] = y[:]"),
        ("rows[i, 2] = x[i]", "rows[:, 2] = x[:]"),
        ("rows[i] = w[3]; out[i] = x[i]", "rows[:] = w[3]\nout[:] = x[:]"),
        ("turned[1, i] = x[i]", "turned[1, :] = x[:]"),
        ("a, b = e[0, i], e[1, i]; table[a, b] = 1.0", "a, b = (e[0, :], e[1, :])\ntable[a, b] = 1.0"),
        ("a = e[0, i]; out[i] = x[a]", "a = e[0, :]\nout[:] = x[a]"),
        ("table[i] = x[i]", ""),
        ("table[i, :] = x[i]", ""),
        ("rows[i] = x[i]", ""),
        ("rows[i, :] = x[i]", ""),
        ("turned[:, i] = w[i]", ""),
        ("table[:, i] = x; out[i] = x[i]", ""),
        ("a = x[i]; table[i] = a", ""),
        ("a = e[0, i]; table[i, a] = 1.0", ""),
        ("a, b = e[0, i], e[1, i]; table[a, b] = x[i]", ""),
        ("rows[i, 1:3] = w[i, 1:3]", ""),
    ],
)
def test_all_places_are_the_same_places(turn, fix):
    loop = f"{PLACES}for i in range(n):\n    {turn}"
    found = [said for *_, said in visits(loop)]
    assert [said for said in found if "[:" in said or ":]" in said] == ([fix] if fix else [])
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    exec(loop, one)  # noqa: S102  (the lines above)
    exec(f"{PLACES}{fix or f'for i in range(n):{chr(10)}    {turn}'}", other)  # noqa: S102
    assert all(one[name].equal(other[name]) for name in ("out", "rows", "table", "turned"))


@pytest.mark.parametrize("edges", ["e.t()", "zip(e[0], e[1])", "zip(e[0].tolist(), e[1].tolist())", "e.t().tolist()"])
def test_places_that_are_gone_through(edges):
    setup = "e, adj = torch.randint(0, 300, (2, 1500)), torch.zeros(300, 300)"
    assert len(visits(setup, f"for i, j in {edges}:\n    adj[i, j] = 1.0")) == 1


@pytest.mark.parametrize(
    ("loop", "turn"),
    [
        ("range(e.shape[1] - 1)", "i, j = e[0, t], e[1, t + 1]\n        adj[i, j] = adj[j, i] + 1"),
        (BY_NUMBER, "i, j = e[0, t], e[1, t]\n        adj[i, j] = adj[i, j] * 0.9 + 1"),
        (BY_NUMBER, "i, j = e[0, t], e[1, t]\n        if adj[i, j] == 0:\n            adj[j, i] = 1.0"),
        ("e[0].tolist()", "n = n + t"),
        ("range(20)", "i, j = e[0, t], e[1, t]\n        adj[i, j] = 1.0"),
    ],
)
def test_places_that_turns_before_have_changed(loop, turn):
    assert visits(EDGES.format(loop, turn)) == []


def test_products():
    ((line, subject, fix),) = visits("r = 1\nfor v in x:\n    r *= v")
    assert (line, subject) == (2, "x")
    assert fix.startswith("one call")


def test_a_tensor_joined_in_a_loop():
    loop = "for (xb,) in loader:\n        kept = torch.cat([kept, net(xb)], dim=0)"
    cell = f"kept = torch.tensor([])\nwith torch.no_grad():\n    {loop}"
    ((line, subject, fix),) = growths(cell)
    assert (line, subject) == (4, "kept")
    assert fix.startswith("kept_parts = []")


def test_two_tensors_joined_in_a_loop_have_a_list_each():
    loop = "for (xb,) in loader:\n    kept = torch.cat([kept, net(xb)])\n    rows = torch.cat([rows, xb.detach()])"
    cell = f"kept, rows = torch.tensor([]), torch.tensor([])\n{loop}"
    first, second = [fix.split(" = ")[0] for _, _, fix in growths(cell)]
    assert (first, second) == ("kept_parts", "rows_parts")


WHILE = "kept = torch.zeros(0, 8)\ni = 0\nwhile i < {}:\n    kept = torch.cat([kept, torch.ones(4, 8)])\n    i += {}"


@pytest.mark.parametrize(("bound", "step"), [("800", "1"), ("len(x)", "4"), ("x.shape[0]", "2")])
def test_a_tensor_joined_while_a_number_counts(bound, step):
    ((line, subject, _),) = growths(WHILE.format(bound, step))
    assert (line, subject) == (4, "kept")
    loop = WHILE.format(bound, step).replace("\n", "\n    ")
    assert growths(f"def run():\n    {loop}\n    return kept\nall = run()")


@pytest.mark.parametrize(
    "cell",
    [
        WHILE.format("9", "1"),
        WHILE.format("800", "1") + "\n    if i > 4:\n        break",
        WHILE.format("800", "1") + "\n    kept.sum()",
        WHILE.format("800", "1") + "\n    i += 9",
        WHILE.format("800", "1").replace("i = 0", "i = 790 + 1"),
        WHILE.format("800", "1").replace("while i < 800", "while i < 800 and kept.sum() < 9"),
        "kept = torch.zeros(0, 8)\nwhile len(kept) < 40:\n    kept = torch.cat([kept, torch.ones(4, 8)])",
    ],
)
def test_a_while_that_is_short_or_not_counted(cell):
    assert growths(cell) == []


IN_A_METHOD = """class Memory:
    def __init__(self):
        self.kept = torch.zeros(0, 8)
    def push(self, row):
        self.kept = torch.vstack([self.kept, row])
    def mean(self):
        return self.kept.mean()
memory = Memory()
for i in range(400):
    memory.push(torch.ones(1, 8))
    HAND_ON
"""


def test_an_entry_of_a_dictionary_joined_in_a_loop():
    loop = "for i in range(400):\n    bank['a'] = torch.vstack((bank['a'], m[:2]))\n    bank['n'] = i"
    ((line, subject, fix),) = growths(f"bank = {{'a': torch.zeros(0, 60), 'n': 0}}\n{loop}")
    assert (line, subject) == (3, "bank['a']")
    assert fix.startswith("a_parts = [bank['a']]")


@pytest.mark.parametrize("place", ["self.kept", "self.kept['a.b']"])
def test_a_list_that_was_an_attribute_goes_on_growing_when_all_of_it_has_been_read(place):
    made = IN_A_METHOD.replace("HAND_ON", "pass").replace("self.kept", place)
    cells = (
        SETUP,
        made.replace(
            f"{place} = torch.zeros(0, 8)", "self.kept = {}; " * ("[" in place) + f"{place} = torch.zeros(0, 8)"
        ),
    )
    (finding,) = findings_in(*cells, slug="cat-grows-in-loop", min_bytes=0)
    lines = [line.partition("  #")[0] for line in finding.fix.splitlines()]
    assert lines == [f"{place} = []", f"{place}.append(row)", f"kept = torch.vstack({place})"]


def test_an_attribute_joined_in_a_method_that_a_loop_calls():
    ((line, subject, fix),) = growths(IN_A_METHOD.replace("HAND_ON", "pass"))
    assert (line, subject) == (5, "self.kept")
    assert fix.startswith("self.kept = []")


@pytest.mark.parametrize(
    "cell",
    [
        IN_A_METHOD.replace("HAND_ON", "memory.mean()"),
        IN_A_METHOD.replace("HAND_ON", "if i == 5: break"),
        IN_A_METHOD.replace("HAND_ON", "pass").replace("row])", "row])\n        self.kept = self.kept[-8:]"),
        IN_A_METHOD.replace("HAND_ON", "pass").replace("row])", "row])\n        return self.kept.sum()"),
        IN_A_METHOD.replace("HAND_ON", "pass").replace("range(400)", "range(20)"),
        "bank = {'a': m}\nfor i in range(400):\n    bank['a'] = torch.cat((bank['a'], m[:2]))\n    seen = dict(bank)",
        IN_A_METHOD.replace("HAND_ON", "pass").replace("row])", "row])\n        n = self.mean()"),
        "bank = {'a': m}\nfor i in range(400):\n    bank['a'] = torch.cat((bank['a'], m[:2]))\n    n = bank['a'].sum()",
    ],
    ids=["read", "break", "window", "used", "few", "all of it", "by another method", "needed"],
)
def test_joins_that_somebody_needs(cell):
    assert growths(cell) == []


@pytest.mark.parametrize(
    ("source", "turns"),
    [
        ("m.repeat(10, 1).split(3)", 0),
        ("big.split(3)", 200),
        ("big.split(3, dim=0)", 200),
        ("torch.split(big, 3)", 200),
        ("big.chunk(120)", 120),
        ("torch.chunk(big, chunks=120)", 120),
        ("big.unbind(0)", 600),
        ("list(big.split(3))", 200),
        ("big.view(300, 2, 8)", 300),
    ],
)
def test_a_loop_over_the_parts_of_a_tensor(source, turns):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP + "\nbig = torch.ones(600, 8)")
        for loop in (f"for b in {source}", f"for i, b in enumerate({source})", f"for b, c in zip({source}, {source})"):
            run = notebook.run(f"kept = torch.empty(0, 8)\n{loop}:\n    kept = torch.cat((kept, b.reshape(-1, 8)))")
            found = [one for one in run.findings if one.slug == "cat-grows-in-loop"]
            assert [f" {turns} turns" in one.message for one in found] == [True] * bool(turns)
        run = notebook.run(
            "def joined(batches):\n    kept = None\n    for b in batches:\n"
            "        kept = b if kept is None else torch.vstack((kept, b))\n    return kept\n"
            f"all_of_it = joined({source})"
        )
        assert [one.line for one in run.findings if one.slug == "cat-grows-in-loop"] == [4] * bool(turns)


LOADED = """
from itertools import islice
from torch.utils.data import Dataset
class Own(Dataset):
    def __len__(self):
        return 600
    def __getitem__(self, i):
        return {"x": torch.ones(8), "y": i}
def grouped(loader):
    found = []
    for b in loader:
        found.append(b)
        if len(found) == 100:
            yield {"x": torch.cat([one["x"] for one in found])}
            found = []
own = DataLoader(Own(), batch_size=3)
"""


@pytest.mark.parametrize(
    ("source", "turns"),
    [
        ("own", 200),
        ("DataLoader(Own(), batch_size=6)", 100),
        ("islice(own, 150)", 150),
        ("zip(own, own)", 201),
        ("grouped(own)", 0),
        ("[b for b in own][:2]", 0),
        ("DataLoader(Own(), batch_size=60)", 0),
    ],
)
def test_a_loop_over_a_loader_that_does_not_say_its_length(source, turns):
    line = 'kept = torch.cat((kept, b["x"]))'
    numbered = source.replace("zip(own, own)", "own")
    loops = (
        f"for b in {source}:\n    {line}" if "zip" not in source else f"for b, c in {source}:\n    {line}",
        f"for i, b in enumerate({numbered}):\n    {line}",
        f"for epoch in range(3):\n    kept = torch.empty(0, 8)\n    for b in {numbered}:\n        {line}",
    )
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP + LOADED)
        for loop in loops:
            run = notebook.run(f"kept = torch.empty(0, 8)\n{loop}")
            found = [one for one in run.findings if one.slug == "cat-grows-in-loop"]
            assert [one.evidence[0].value in (turns, 200) for one in found] == [True] * bool(turns)
        inner = f"    kept = torch.empty(0, 8)\n    for b in loader:\n        {line}\n    return kept"
        run = notebook.run(f"def joined(loader):\n{inner}\nz = joined({numbered})")
        begun_here = bool(turns) and "islice" not in source
        assert [one.line for one in run.findings if one.slug == "cat-grows-in-loop"] == [4] * begun_here
    assert not any(notebook.errors)


FIRST = "kept = None\nfor i in range(400):\n    b = torch.ones(1, 8) * i\n    {}"


@pytest.mark.parametrize(
    "joins",
    [
        "kept = b if kept is None else torch.cat((kept, b))",
        "kept = torch.cat((kept, b)) if kept is not None else b",
        "if i == 0:\n        kept = b\n    else:\n        kept = torch.vstack((kept, b))",
        "if kept is None:\n        kept = b\n    else:\n        kept = torch.concat([kept, b], dim=0)",
        "if i:\n        kept = torch.cat((b, kept))\n    else:\n        kept = b",
        "if i > 0:\n        kept = torch.cat((kept.view(-1, 8), b))\n    else:\n        kept = b",
        "kept = torch.cat((torch.zeros(2, 8) if kept is None else kept, b))",
        "kept = torch.ones(2, 8) if i == 0 else torch.cat((kept, b, b + 1))",
    ],
)
def test_the_first_piece_as_it_is(joins):
    told = "zeros(2" not in joins and "ones(2" not in joins
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(FIRST.format(joins))
        found = [one for one in run.findings if one.slug == "cat-grows-in-loop"]
        assert [one.subject for one in found] == ["kept"] * told
        if told:
            begin, turn, end = found[0].fix.splitlines()
            notebook.run(f"before = kept\n{begin}\n{FIRST.format(turn).partition(chr(10))[2]}\n{end}")
            assert notebook.shell.user_ns["kept"].equal(notebook.shell.user_ns["before"])


@pytest.mark.parametrize(
    "cell",
    [
        FIRST.format("kept = b if i % 50 == 0 else torch.cat((kept, b))"),
        FIRST.format("kept = b if x[i] > 9 or kept is None else torch.cat((kept, b))"),
        FIRST.format("kept = b if kept is None else torch.cat((kept, b))") + "\n    kept.sum()",
        FIRST.format("if i % 9 == 0:\n        kept = b\n    else:\n        kept = torch.cat((kept, b))"),
        FIRST.format("kept = b if kept is None else torch.cat((kept, b))").replace("400", "9"),
    ],
    ids=["begun again", "at times", "read", "begun again, as a statement", "few"],
)
def test_a_tensor_that_is_begun_again(cell):
    assert growths(cell) == []


@pytest.mark.parametrize("joined", ["(kept, p)", "(p, kept)", "(kept, p, -p)", "(p, -p, kept)"])
@pytest.mark.parametrize("begin", ["torch.zeros(0, 8)", "torch.ones(2, 8)", "torch.empty((0, 8))"])
def test_the_fix_keeps_the_order(joined, begin):
    loop = "for i in range(100):\n    p = torch.full((1, 8), float(i))\n    "
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"kept = {begin}\n{loop}kept = torch.cat({joined})")
        start, turn, end = run.findings[0].fix.splitlines()
        notebook.run(f"before = kept\nkept = {begin}\n{start}\n{loop}{turn}\n{end}")
        assert notebook.shell.user_ns["kept"].equal(notebook.shell.user_ns["before"])


def test_the_fix_runs():
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(
            "kept = torch.zeros(0, 8)\nfor i in range(100):\n    kept = torch.cat((kept, torch.ones(1, 8)), dim=0)"
        )
        made, joined = [line.partition("  #")[0] for line in run.findings[0].fix.splitlines()[1:]]
        notebook.run(f"before = kept\nparts = []\nfor i in range(100):\n    {made}\n{joined}")
        assert notebook.shell.user_ns["kept"].equal(notebook.shell.user_ns["before"])


@pytest.mark.parametrize(
    "cell",
    [
        "w = torch.zeros(60)\nfor e in range(20):\n  for i in range(60):\n    if w @ m[i] != y[i]: w += y[i] * m[i]",
        (
            "d = m.abs()\nfor k in range(20):\n  for i in range(60):\n    for j in range(60):\n"
            "      d[i, j] = min(d[i, j], d[i, k] + d[k, j])"
        ),
        "a = [0.0]\nfor i in range(3000):\n    a.append(0.9 * a[-1] + x[i].item())",
        "h = 0\nfor i in range(3000):\n    new = 0.9 * h + x[i]\n    h = new",
        "h = 0\nfor i in range(3000):\n    h += 0.1 * (x[i] - h)",
        "h = torch.zeros(1)\nfor i in range(3000):\n    h.mul_(0.9).add_(x[i])",
        "w = 0\nfor i in range(3000):\n    w = w + 0.1 * (y[i] - w * x[i]) * x[i]",
        "a = torch.zeros(1)\nfor i in range(3000):\n    a[0] = a[0] * 0.9 + x[i]",
        "a = torch.zeros(5)\nfor i, v in zip(k, x):\n    a[i] += 0.1 * (v - a[i])",
        "a = torch.zeros(5)\nfor i, v in zip(k.view(-1), x.view(-1)):\n    a[i.long()] = 0.9 * a[i.long()] + v",
        "a = torch.zeros(3001)\nfor i in range(3000):\n    a[i + 1] = a[i] * 0.9 + x[i]",
    ],
)
def test_turns_that_need_those_before(cell):
    assert visits(cell) == []


@pytest.mark.parametrize(
    "cell",
    [
        "kept = torch.zeros(1)\nfor i in range(200):\n    kept = torch.cat([kept, kept[-1:] + 1])",
        "kept = torch.zeros(1)\nfor i in range(200):\n    kept = torch.cat([kept, x[:1]])\n    kept = kept[-8:]",
        "kept = torch.zeros(1)\nfor i in range(200):\n    kept = torch.cat([kept, torch.ones(1)])\n    kept.sum()",
        "kept = torch.zeros(0)\nfor i in range(10):\n    kept = torch.cat([kept, torch.ones(1)])",
        "parts = []\nfor i in range(200):\n    parts.append(torch.ones(1))\nkept = torch.cat(parts)",
        "for i in range(200):\n    both = torch.cat([x, y])",
    ],
    ids=["needed", "window", "read", "few", "once", "others"],
)
def test_joins_that_are_meant(cell):
    assert growths(cell) == []


def said_of(cell):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(cell)
        return [finding.message for finding in run.findings if finding.slug == "python-loop-over-tensor"]


@pytest.mark.parametrize(
    ("cell", "times"),
    [
        ("for i in range(3000):\n  if x[i] > 0.5:\n    y[i] = 1\n  else:\n    y[i] = 0", " 6,000 times"),
        ("for i in range(3000):\n  if x[i] > 0.5:\n    y[i] = 1", " up to 6,000 times"),
        ("n = 0\nfor a, b in zip(x, y):\n  n += bool(a > 0 and b > 0)", " 6,000 times"),
        ("n = 0\nfor i in range(3000):\n  n += bool(x[i] > 0 and y[i] > 0)", " up to 6,000 times"),
        ("z = [float(x[i]) + float(x[i]) for i in range(3000)]", " 3,000 times"),
        ("n = 0\nfor i in range(3000):\n  if x[i] > 0:\n    continue\n  n += y[i]", " up to 6,000 times"),
    ],
)
def test_what_stands_in_branches_is_counted_once(cell, times):
    (message,) = said_of(cell)
    assert f"one by one,{times} in all" in message


def test_what_a_function_visits_is_told_for_one_call():
    (message,) = said_of(f"{IN_A_FUNCTION}z = f(y, x)")
    assert "6,000 times in one call" in message


LOOPS = """\
import torch
torch.manual_seed(0)
a, b = torch.rand(1500, 3, 4), torch.rand(1500, 4, 2)
u, v = torch.rand(1500, 6), torch.rand(1500, 6)
points, others = torch.randn(60, 3), torch.randn(50, 3)
labels, preds = torch.randint(0, 5, (3000,)), torch.randint(0, 4, (3000,))"""
PAIRS = "d = torch.zeros(60, 50)\nfor i in range(60):\n    for j in range(50):\n        d[i, j] = {}"
TABLE = "t = torch.zeros(5, 4)\n{}"


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("d = torch.zeros(1500, 3, 2)\nfor i in range(len(a)):\n    d[i] = a[i] @ b[i]", "d = a @ b"),
        ("d = torch.zeros(1500, 3, 2)\nfor i in range(a.shape[0]):\n    d[i] = torch.mm(a[i], b[i])", "d = a @ b"),
        ("d = torch.zeros(1500)\nfor i in range(1500):\n    d[i] = u[i] @ v[i]", "d = (u * v).sum(1)"),
        ("d = torch.zeros(1500)\nfor i in range(1500):\n    d[i] = (u[i] * v[i]).sum()", "d = (u * v).sum(1)"),
        (PAIRS.format("((points[i] - others[j]) ** 2).sum()"), "d = torch.cdist(points, others) ** 2"),
        (
            PAIRS.format("torch.norm(points[i] - others[j])").replace("[i, j]", "[i][j]"),
            "d = torch.cdist(points, others)",
        ),
        (PAIRS.format("(points[i] - others[j]).pow(2).sum().sqrt()"), "d = torch.cdist(points, others)"),
        (PAIRS.format("(points[i] - others[j]).abs().sum().item()"), "d = torch.cdist(points, others, p=1)"),
        (
            TABLE.format("for p, q in zip(labels.view(-1), preds):\n    t[p.long(), q.long()] += 1"),
            "t += torch.bincount(labels * 4 + preds, minlength=20).view(5, 4)",
        ),
        (
            TABLE.format("for i in range(len(labels)):\n    t[labels[i], preds[i]] += 1"),
            "t += torch.bincount(labels * 4 + preds, minlength=20).view(5, 4)",
        ),
    ],
)
def test_a_loop_that_is_one_call(cell, fix):
    made = "d" if cell.startswith("d") else "t"
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(LOOPS)
        (finding,) = (one for one in notebook.run(cell).findings if one.slug == "python-loop-over-tensor")
        assert finding.fix == f"{fix}  # one call"
        assert f"`{made}`" in finding.message
        notebook.run(
            f"before = {made}\n{cell.splitlines()[0]}\n{finding.fix}\nsame = torch.allclose({made}, before, atol=1e-3)"
        )
        assert notebook.shell.user_ns["same"]


@pytest.mark.parametrize(
    "cell",
    [
        "d = torch.zeros(1500, 3, 2)\nfor i in range(1400):\n    d[i] = a[i] @ b[i]",
        "d = torch.zeros(1500, 3, 2)\nfor i in range(1500):\n    d[i] = a[i] @ b[i] + 1",
        PAIRS.format("((points[i] - others[j]) ** 3).sum()"),
        PAIRS.format("torch.norm(points[j] - others[i])").replace("60", "50"),
        TABLE.format("for p, q in zip(labels, preds):\n    t[p, q] += 2"),
        TABLE.format("for p, q in zip(labels[1:], preds):\n    t[p, q] += 1"),
    ],
)
def test_a_loop_that_is_nearly_one_call(cell):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(LOOPS)
        for finding in notebook.run(cell).findings:
            assert not finding.fix.startswith(("d =", "t +="))


IOU = """\
def overlap(a, b):
    "Of two boxes."
    wide = (torch.min(a[2:], b[2:]) - torch.max(a[:2], b[:2])).clamp(min=0)
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    inner = wide[0] * wide[1]
    return inner / (area(a) + area(b) - inner)
def table(one, two):
    out = torch.zeros(len(one), len(two))
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            out[i, j] = {}
    return out
boxes = torch.rand(60, 4)
def far(a, b):
    return (overlap(a, b) - 1).abs()
kept = []
def keeps(a, b):
    kept.append(a)
    return (a - b).sum()
def chooses(a, b):
    return a.sum() if a[0] > b[0] else b.sum()
def shows(a, b):
    print(a)
    return a.sum()
def draws(a, b):
    return (a - b).sum() + torch.randn(())
def writes(a, b):
    a[0] = 1
    return a.sum()
def reads_all(a, b):
    return (large - a[0]).sum()
large, net = torch.zeros(90_000), torch.nn.Linear(4, 1)
def calls(a, b):
    return net(a - b).sum()
"""


@pytest.mark.parametrize("call", ["overlap(a, b)", "far(a, b) * 2", "torch.exp(-overlap(a, b))"])
@pytest.mark.parametrize("given", ["boxes, boxes", "torch.cat([boxes, boxes]), boxes"])
def test_loops_that_call_a_function_that_only_computes(call, given):
    ((line, subject, _),) = visits(IOU.format(call), f"m = table({given})")
    assert (line, subject) == (9, "one")


@pytest.mark.parametrize("name", ["keeps", "chooses", "shows", "draws", "writes", "reads_all", "calls"])
def test_loops_that_call_a_function_that_does_more(name):
    assert visits(IOU.format(f"{name}(a, b)"), "m = table(boxes, boxes)") == []


@pytest.mark.parametrize(
    "cell",
    [
        "out = []\nfor row in x:\n    out.append(row[row > 0].sort().values)",
        "out = []\nfor row in x:\n    kept = ~row.isnan()\n    out.append(row[kept])",
        "out = [torch.masked_select(row, row > 0) for row in x]",
        "out = [x[i].unique() for i in range(2000)]",
        "out = [torch.where(row > 0)[0] for row in x]",
        "out = [row.nonzero() for row in x]",
        "def f(row): return torch.zeros(row.argmax() + 1)\nout = [f(row) for row in x]",
        "def f(row): return row.to_sparse()\nout = [f(row) for row in x]",
        "def f(row): return nn.functional.one_hot(row.long().abs())\nout = [f(row) for row in x]",
    ],
)
def test_rows_of_lengths_of_their_own(cell):
    setup = "import torch\nfrom torch import nn\nx = torch.randn(2000, 8)"
    assert not findings_in(setup, cell, slug="python-loop-over-tensor", fails=False)


@pytest.mark.parametrize("value", ["row[row > 0].sum()", "torch.zeros(len(row)) + row", "torch.where(row > 0, row, 0)"])
def test_rows_of_one_length(value):
    setup = "import torch\nx = torch.randn(2000, 8)"
    assert findings_in(setup, f"out = [{value} for row in x]", slug="python-loop-over-tensor", fails=False)


@pytest.mark.parametrize(
    ("function", "body"),
    [
        ("advance(row): return 0.9 * state + 0.1 * row", "state = advance(row); h.append(state)"),
        ("advance(row): return 0.9 * h[-1] + 0.1 * row", "h.append(advance(row))"),
        ("advance(row): return torch.stack(h[-5:]).sum(0) + row", "h.append(advance(row))"),
        ("advance(row): return row[row > 0].sum()", "out.append(advance(row))"),
        ("advance(row): return torch.unique(row).sum()", "out.append(advance(row))"),
        ("advance(row): return torch.bincount(row.long().abs()) * 2", "out.append(advance(row))"),
    ],
)
def test_functions_that_carry_a_state_or_have_lengths(function, body):
    setup = f"x, state, h, out = torch.randn(4000, 4), torch.zeros(4), [torch.zeros(4)], []\ndef {function}"
    assert visits(setup, f"for row in x:\n    {body}") == []
    plain = setup.replace(function, "advance(row): return (0.9 * row).sum()")
    assert visits(plain, "for row in x:\n    out.append(advance(row))") != []


OF_A_RESULT = """def scores(e, c):
    out = torch.zeros(e.size(0), e.size(1), c.size(0))
    for s in range(e.size(0)):
        for u in range(e.size(1)):
            for k in range({}):
                {}
    return out
def middle(e):
    parts = []
    for one in e:
        parts.append(one.mean(0))
    return torch.stack(parts)
e = torch.randn(12, 8, 64)"""
COSINE = "out[s][u][k] = torch.cosine_similarity(e[s][u], c[k], dim=0)"


def test_a_bound_that_belongs_to_the_result_of_a_function():
    cell = OF_A_RESULT.format("c.size(0)", COSINE)
    assert [one[:2] for one in visits(cell, "out = scores(e, middle(e))")] == [(3, "e")]
    assert [one[:2] for one in visits(cell, "m = scores(e, c=middle(e))\nprint(m.shape)")] == [(3, "e")]
    own = "def middle(e):\n    found = e.mean(1)\n    return found"
    text = cell.replace("e.size(1), c.size(0))", "e.size(1), 12)")
    assert [one[:2] for one in visits(text, own, "sums = scores(e, middle(e)).sum()")] == [(3, "e")]


@pytest.mark.parametrize(
    ("cell", "call"),
    [
        (OF_A_RESULT.format("c.size(0)", COSINE).replace("12, 8", "3, 4"), "out = scores(e, middle(e))"),
        (OF_A_RESULT.format("c.size(0)", COSINE).replace("return out", "return out.sum()"), "x = scores(e, middle(e))"),
        (OF_A_RESULT.format("len(c) - 1", COSINE), "out = scores(e, middle(e))"),
        (
            OF_A_RESULT.format("c.size(0)", COSINE).replace("c.size(0))", "c.size(0)); c = c[:3]", 1),
            "out = scores(e, middle(e))",
        ),
        (
            OF_A_RESULT.format("c.size(0)", "out[s][u][k] = net(e[s][u]).sum()"),
            "net = nn.Linear(64, 1)\nout = scores(e, middle(e))",
        ),
    ],
)
def test_bounds_that_are_not_told(cell, call):
    assert not visits(cell, call)


CONFUSION = """\
m, a, b = torch.zeros(5, 5), y.view(40, 50), z.view(40, 50)
for t, p in zip(a.view(-1), b.view(-1)):
    m[t.long(), p.long()] += 1"""
SMOOTHED = """\
def fill(y, n):
    m = torch.full((len(y), n), 0.1 / n)
    for i in range(len(y)):
        m[i, y[i]] = 1
fill(y, 5)"""


@pytest.mark.parametrize(
    ("code", "filled"),
    [
        (CONFUSION, "`m`"),
        (SMOOTHED, "`m`"),
        ("m = torch.zeros(2000)\nfor i in range(2000):\n    m[i] = y[i] * 2", ""),
        ("s = 0\nfor one in y:\n    s += one", ""),
    ],
)
def test_what_a_loop_fills_is_named(code, filled):
    setup = "import torch\ny, z = torch.randint(0, 5, (2, 2000))"
    (finding,) = findings_in(setup, code, slug="python-loop-over-tensor", fails=False)
    assert (f", to fill {filled}: " in finding.message) == bool(filled)
    assert ("to fill" in finding.message) == bool(filled)
