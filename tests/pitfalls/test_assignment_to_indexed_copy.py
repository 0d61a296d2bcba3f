"""Chained indexes in functions: masks that are variables there, and assignments that do change the tensor."""

from typing import Any

import pytest

from tests.cells import findings_in

SETUP = "import torch\nids = torch.arange(20)\n"
FUNCTION = """
def f({parameters}):
    {lines}
    return {result}
out = f({given})
"""
METHOD = """
class Cleaner:
    def run(self, row):
        wrong = ~(row != 0)
        row[wrong][0] = 1
        return row
done = Cleaner().run(ids)
"""


def a_function(*lines, parameters="ids", given="ids"):
    result = parameters.split(",")[0]
    return FUNCTION.format(parameters=parameters, lines="\n    ".join(lines), result=result, given=given)


FOUND = {
    "a mask with a name": a_function("mask = ids > 5", "ids[mask][:3] = -1"),
    "two conditions": a_function("keep = (ids > 2) & (ids < 9)", "ids[keep][0] = 7", given="ids + 0"),
    "of something new": a_function("keep = ids != 0", "ids[keep][0] = 7", given="torch.randint(0, 3, (5,))"),
    "in a method": METHOD,
    "changed in place": a_function("mask = ids > 5", "ids[mask].fill_(0)"),
}
TABLE = """
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(9, 4)
    def load(self, vocab, vectors):
        rows = torch.tensor({rows})
        with torch.no_grad():
            {change}
tagger = Tagger()
tagger.load({{"cat": 2, "dog": 5}}, torch.ones(2, 4))
"""
ROWS = "[vocab[word] for word in vocab]"
FOUND.update(
    {
        "vectors into a table": TABLE.format(rows=ROWS, change="self.emb.weight.data[rows].copy_(vectors)"),
        "a table without data": TABLE.format(rows=ROWS, change="self.emb.weight[rows].copy_(vectors)"),
        "a table of numbers": TABLE.format(rows="[2, 5]", change="self.emb.weight.data[rows].fill_(0)"),
    }
)
QUIET = {
    "vectors into rows": TABLE.format(rows=ROWS, change="self.emb.weight[rows] = vectors"),
    "one row of a table": TABLE.format(rows="vocab['cat']", change="self.emb.weight[rows].copy_(vectors[0])"),
    "one row by a tensor": TABLE.format(rows="2", change="self.emb.weight[torch.tensor(3)].copy_(vectors[0])"),
    "rows of a dictionary": TABLE.format(rows=ROWS, change="{0: vectors}[0].copy_(vectors)"),
    "one index": a_function("mask = ids > 5", "ids[mask] = -1"),
    "a row of a table": a_function("i = 2", "ids[i][:3] = -1", given="torch.zeros(4, 5)"),
    "a list of tensors": a_function("last = len(ids) - 1", "ids[last][0] = 1", given="[torch.zeros(3)]"),
    "a dictionary by name": a_function("k = 'a'", "ids[k][0] = 1", given="{'a': torch.zeros(3)}"),
    "a copy that is kept": a_function("mask = ids > 5", "rows = ids[mask]", "rows[:3] = -1", "ids[mask] = rows"),
    "a slice or a mask": a_function("part = ids > 0", "if 1: part = slice(0, 2)", "ids[part][0] = 1"),
    "a pair by a truth": a_function(
        "side = a > 1", "pair[side][0] = 5", parameters="pair, a", given="(torch.zeros(2), torch.zeros(2)), 3"
    ),
    "a new pair by a truth": "def make(): return torch.zeros(2), torch.zeros(2)"
    + a_function("side = a > 1", "pair[side][0] = 5", parameters="pair, a", given="make(), 3"),
}

# Of the argument nothing is known: it is made in the call, by a function of the user's.
TRUTHS = "class Cells:\n    def __init__(self): self.cells = {True: [0, 0], False: [0, 0]}\n"
QUIET.update(
    {
        "a dictionary by a truth": a_function("d[n > 2][0] = 1", parameters="d, n", given="{True: [0], False: [0]}, 3"),
        "a dictionary of an object": TRUTHS + "    def put(self, n): self.cells[n > 2][0] = 1\nCells().put(3)",
        "a new dictionary by a truth": "def make(): return {True: [0, 0], False: [0, 0]}"
        + a_function("for n in labels: d[n == 1][n] += 1", parameters="d, labels", given="make(), [0, 1]"),
        "a list from its end": "def make(): return [[0], [0]]"
        + a_function("rows[~i][0] = 1", "rows[len(rows) > 1][0] = 1", parameters="rows, i", given="make(), 0"),
    }
)
FOUND["a mask of another tensor"] = "def make(): return torch.rand(20, 3)" + a_function(
    "a[m > 5][:, 0] = 1", parameters="a, m", given="make(), ids"
)

NEW = "import random\ndef make(): return torch.arange(20).view(5, 4) + 0\n"


def of_rows(*lines):
    return NEW + a_function("x = x.clone()", *lines, parameters="x", given="make()")


FOUND.update(
    {
        "distinct rows": of_rows("rows, cols = (x > 5).nonzero().unbind(1)", "some = rows.unique()", "x[some][0] = 1"),
        "a column of some rows": of_rows("some = torch.randperm(5)[:2]", "x[some][:, 0] = 1"),
        "some rows of what was given": NEW
        + a_function("some = torch.randperm(5)", "x[some[:2]][:, 0] = 1", parameters="x", given="make()"),
        "drawn rows": of_rows("drawn = torch.randint(0, 5, (2,))", "x[drawn][0, 1] += 1"),
        "filled": of_rows("where = (x[:, 0] > 3).nonzero()[:, 0]", "x[where].fill_(1)"),
    }
)
QUIET.update(
    {
        "one drawn row": of_rows("x[random.randint(0, 3)][0] = 1"),
        "one drawn number": of_rows("i = random.randint(0, 3)", "x[i][0] = 1"),
        "one of the rows": of_rows("order = torch.randperm(5)", "x[order[0]][0] = 1"),
        "a number in a tensor": of_rows("i = 3", "x[torch.tensor(i)][0] = 1"),
        "rows or a number": of_rows("r = torch.randperm(5)", "r = 2", "x[r][0] = 1"),
        "a list of one row": NEW
        + a_function("r = torch.arange(1)", "x[r][0] = 1", parameters="x", given="list(make())"),
        "one row of the cell": "import random\nx = torch.zeros(5, 4)\nx[random.randint(0, 3)][0] = 1",
    }
)


NEW_ONES = "class Boxes:\n    def drop(self, s, hit):\n        {lines}\n        return s\nBoxes().drop({given})\n"


def of_new(*lines, given="torch.rand(12), torch.tensor([1, 2])"):
    return NEW_ONES.format(lines="\n        ".join(lines), given=given)


FOUND.update(
    {
        "rows that the call makes": of_new("s[hit].fill_(-1.0)"),
        "parts of themselves": of_new("r = (hit > 1).nonzero().squeeze(1)", "r = r[r > 0]", "s[r].fill_(-1.0)"),
        "a mask by a function": of_new("r = torch.isin(hit, torch.tensor([2]))", "s[:2][r][0] = 1"),
        "sorted rows": of_new("r = s.argsort()[:3]", "s[r][:2] = 1"),
        "the largest": of_new("s[s.topk(3).indices].zero_()"),
        "where": of_new("s[torch.where(s > 0.5)[0]].zero_()"),
    }
)
QUIET.update(
    {
        "a number that the call makes": of_new("s[hit].fill_(-1.0)", given="torch.rand(12), 3"),
        "a number in a new tensor": of_new("s[hit].fill_(-1.0)", given="torch.rand(12), torch.tensor(3)"),
        "a new list": of_new("s[hit][0] = -1.0", given="[torch.rand(12)], torch.tensor([0]).sum()"),
        "rows that become one": of_new("hit = hit[0]", "s[hit].fill_(-1.0)"),
        "the largest one": of_new("best = s.argsort()[-1]", "s[best].fill_(-1.0)"),
        "one of those": of_new("s[torch.where(s > -1)[0][0]].zero_()"),
    }
)


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    (finding,) = findings_in(SETUP, FOUND[name], fails=False)
    assert finding.slug == "assignment-to-indexed-copy"


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert findings_in(SETUP, QUIET[name], fails=False) == []


TABLE_OF_NUMBERS = "import torch\nx = torch.arange(20.).view(5, 4)\nmask = x[:, 0] > 4\nrows = torch.tensor([0, 3])\n"


@pytest.mark.parametrize(
    ("statement", "fix"),
    [
        ("x[mask][:, :2] = 0", "x[mask, :2] = 0"),
        ("x[mask][:, 1] += 5", "x[mask, 1] += 5"),
        ("x[mask][0] = -1", "rows = x[mask]\nrows[0] = -1\nx[mask] = rows"),
        ("x[rows][0, 1] *= 2", "picked = x[rows]\npicked[0, 1] *= 2\nx[rows] = picked"),
        ("x[mask].zero_()", "x[mask] = 0"),
        ("x[x > 3].mul_(2)", "x[x > 3] *= 2"),
        ("x[rows].copy_(torch.ones(2, 4))", "x[rows] = torch.ones(2, 4)"),
        ("x[mask].clamp_(0, 1)", "x[mask] = x[mask].clamp_(0, 1)"),
        ("torch.nn.init.uniform_(x[rows], -1, 0)", "x[rows] = torch.nn.init.uniform_(x[rows], -1, 0)"),
        ("torch.mul(x[:2], 3, out=x[rows])", "x[rows] = torch.mul(x[:2], 3)"),
        ("x[mask][0].fill_(-5)", "rows = x[mask]\nrows[0].fill_(-5)\nx[mask] = rows"),
        ("x[mask][0][1] = -5", "rows = x[mask]\nrows[0][1] = -5\nx[mask] = rows"),
        ("x[mask].view(-1)[0] = -5", "rows = x[mask]\nrows.view(-1)[0] = -5\nx[mask] = rows"),
    ],
)
def test_the_fix_changes_the_tensor_itself(statement, fix):
    (finding,) = findings_in(TABLE_OF_NUMBERS, statement + ";", slug="assignment-to-indexed-copy")
    assert finding.fix == fix
    before = f"before = x.clone()\n{fix}\nassert not torch.equal(before, x)"
    assert findings_in(TABLE_OF_NUMBERS, before, slug="assignment-to-indexed-copy", fails=False) == []


@pytest.mark.parametrize(
    "index",
    [
        ":, [1, 2]",
        ":, cols",
        ":, x[0] > 1",
        ":, 1:3",
        ":, -1",
        ":, j",
        "0",
        ":, torch.tensor([1, 2])",
        "::2",
        "(*place, 2)",
    ],
)
def test_the_fix_writes_where_the_statement_meant_to(index):
    setup = f"{TABLE_OF_NUMBERS}cols, j, place = torch.tensor([1, 2]), 3, (0,)\n"
    (finding,) = findings_in(setup, f"x[rows][{index}] = -1.0", fails=False)
    names: dict[str, Any] = {}
    exec(setup, names)  # noqa: S102  (the lines above)
    wanted, rows = names["x"].clone(), names["x"][names["rows"]]
    exec(f"rows[{index}] = -1.0", names | {"rows": rows})  # noqa: S102
    wanted[names["rows"]] = rows
    exec(finding.fix, names)  # noqa: S102
    assert names["x"].equal(wanted)


LEAF = "import torch\nfrom torch import nn\nx, rows = nn.Parameter(torch.ones(5, 4)), torch.tensor([0, 3])\n"


@pytest.mark.parametrize(
    ("statement", "fix"),
    [
        ("nn.init.zeros_(x[rows])", "x[rows] = nn.init.zeros_(x[rows])"),
        ("x[rows].mul_(2.0)", "x[rows] *= 2.0"),
    ],
)
def test_a_leaf_is_changed_where_torch_lets_it(statement, fix):
    (bare,) = findings_in(LEAF, statement + ";", slug="assignment-to-indexed-copy")
    assert bare.fix == f"with torch.no_grad():\n    {fix}"
    (inside,) = findings_in(LEAF, f"with torch.no_grad():\n    {statement}", slug="assignment-to-indexed-copy")
    assert inside.fix == fix
    assert not findings_in(LEAF, f"{bare.fix}\nassert not (x == 1).all()", slug="assignment-to-indexed-copy")


@pytest.mark.parametrize(
    "statement",
    [
        "x[mask] = torch.nn.init.ones_(x[mask])",
        "made = torch.nn.init.ones_(x[mask])",
        "torch.nn.init.ones_(x[1:3])",
        "torch.nn.init.ones_(x[0])",
        "torch.mul(x[mask], 2, out=torch.empty(0))",
        "x[1][0].fill_(0)",
        "x[:2].T[0] = 1",
    ],
)
def test_what_is_kept_or_no_copy(statement):
    assert not findings_in(TABLE_OF_NUMBERS, statement, slug="assignment-to-indexed-copy")


@pytest.mark.parametrize(
    ("cell", "severity"),
    [
        ("x[mask].sqrt_()", "hint"),
        ("torch.relu_(x[mask])  # what of it", "hint"),
        ("x[mask].sqrt_();  # not shown", "error"),
        ("x[mask].sqrt_()\ny = 1", "error"),
        ("x[mask].zero_()", "error"),
        ("torch.nn.init.uniform_(x[mask])", "error"),
    ],
)
def test_what_the_cell_shows_may_be_all_that_is_wanted(cell, severity):
    (finding,) = findings_in(TABLE_OF_NUMBERS, cell, slug="assignment-to-indexed-copy")
    assert finding.severity == severity


FIELDS = """\
from types import SimpleNamespace
def put(b):
    b.x[b.i][0] = 4.0
    {}
def close(b):
    b.i = torch.arange(2)
b = SimpleNamespace(x=torch.zeros(5, 4), i={})
put(b)
{}"""


@pytest.mark.parametrize(
    ("line", "below"),
    [
        ("b.i = torch.arange(2)", ""),
        ("", "b.i = torch.arange(2)"),
        ("close(b)", ""),
        ("", "setattr(b, 'i', b.x > 1)"),
        ("", "d = vars(b)\nd.update({c: torch.arange(2) for c in 'i'})"),
        ("", "vars(b).update({c: torch.arange(2) for c in 'i'})"),
        ("", "b.__dict__.update({c: torch.arange(2) for c in 'i'})"),
    ],
)
def test_an_index_that_is_stored_later_may_have_been_a_number(line, below):
    assert not findings_in(SETUP, FIELDS.format(line or "return", "2", below), slug="assignment-to-indexed-copy")


def test_an_index_that_stays():
    code = FIELDS.format("b.y = 1", "torch.arange(2)", "b.x = b.x + 1")
    (finding,) = findings_in(SETUP, code, slug="assignment-to-indexed-copy")
    assert (finding.severity, finding.subject) == ("error", "b.x")
