"""Small whole numbers that wrap: with a number on the left, and where a function made the operand and dropped it."""

import ast
from typing import Any

import pytest

from tests.cells import findings_in
from torch_inspector.facts import syntax
from torch_inspector.observe import undone

# ruff: noqa: E501

SLUG = "uint8-arithmetic-wraps"
SETUP = """\
import torch
torch.manual_seed(0)
n = 19
gt = torch.arange(16, dtype=torch.uint8).view(4, 4)
few, many = gt // 4, gt + 200
boxes = (torch.arange(36) / 36).view(9, 4)
class Grid:
    def __init__(self, w):
        self.w = w
    def cells(self, boxes):
        cx = (boxes[:, 0] * self.w).to(torch.int8)
        return self.w * cx + cx
grid, small = Grid(32), Grid(3)
def times(c):
    return c * 32
"""
MATRIX = """\
def matrix(all, other):
    for g, r in zip(all, other):
        keep = g != 255
        g, r = g[keep], r[keep]
        inds = n * g + r
"""
MADE = "def go(c):\n    k = {made}\n    return k * 32\nr = go({given})"


def found(*cells):
    return findings_in(SETUP, *cells, slug=SLUG, fails=False)


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("x = 19 * gt", "gt = gt.long()"),
        ("x = n * gt + few", "gt = gt.long()"),
        ("x = 2 * many", "many = many.float()"),
        ("x = 3 - many", "many = many.float()"),
        ("x = 1 - many", "many = many.float()"),
        ("many = 100 + many", "many = many.float()"),
        ("def mix(g, r):\n    return n * g + r\nx = mix(gt, few)", "g = g.float()"),
    ],
)
def test_a_number_on_the_left(cell, fix):
    (finding,) = found(cell)
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "cell",
    [
        "x = 255 - gt",
        "x = 256 - gt",
        "x = 1 - (gt > 3).byte()",
        "x = 3 * few + few",
        "x = 2 ** few",
        "x = (19 * gt) & 255",
    ],
)
def test_a_number_on_the_left_that_fits(cell):
    assert not found(cell)


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("(c[:, 0] * 32).to(torch.int8)", "boxes"),
        ("(c[:, 0] * 32).round().char()", "boxes"),
        ("(c * 32).type(torch.uint8)", "boxes[:, 1]"),
        ("c.to(dtype=torch.uint8)", "boxes * 30"),
        ("c[~(c == 255)]", "gt"),
        ("c[c > 1]", "gt"),
        ("c", "(boxes * 30).byte()"),
        ("c % 16", "gt"),
    ],
)
def test_an_operand_that_a_function_made(made, given):
    (finding,) = found(MADE.format(made=made, given=given))
    assert "`k * 32`" in finding.message


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("(c[:, 0] * 3).to(torch.int8)", "boxes"),
        ("c[c < 3]", "gt"),
        ("c", "(boxes * 3).byte()"),
        ("c // 4", "gt"),
        ("(c * 32).to(torch.int16)", "boxes"),
        ("(c * 32).byte() if len(c) < 3 else c.byte()", "boxes"),
        ("(torch.rand_like(c) * 32).byte()", "boxes"),
        ("(c * 1000).byte()", "boxes"),
        ("c.byte() if c.sum() < 0 else 0 * c.byte()", "boxes"),
        ("(c * 32).byte(); k //= 16", "boxes"),
        ("(c * 32).byte(); k = k // 16", "boxes"),
        ("(c * 32).byte()\n    k.clamp_(0, 3)", "boxes"),
        ("(c * 3).byte(); c *= 30", "boxes"),
    ],
)
def test_an_operand_that_fits_or_nobody_knows(made, given):
    assert not found(MADE.format(made=made, given=given))


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("i = grid.cells(boxes)", "self.w * cx"),
        ("r = times((boxes[:, 1] * 32).to(torch.int8))", "c * 32"),
        ("def outer(b):\n    return times((b * 30).byte())\nr = outer(boxes)", "c * 32"),
        (
            MATRIX + "matrix([gt, gt], [few, few])",
            "n * g",
        ),
    ],
)
def test_operands_of_methods_calls_and_loops(cell, text):
    (finding,) = found(cell)
    assert f"`{text}`" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        "i = small.cells(boxes)",
        "r = times((boxes * 3).byte())\nboxes *= 30",
        "r = times((boxes * 3).byte())\nboxes = boxes * 30\nprint(boxes.sum())",
        "rs = [times(gt // 4) for gt in [few]]",
        "r = times(few)\nfew = many\nprint(few.sum())",
        "few = times(few)\nprint(few.sum())",
        "def go():\n    return 32 * few\nr = go()\nfew = many\nprint(few.sum())",
        "c = few + few\nfew.fill_(250)\nprint(c.sum())",
        "def go(c):\n    c = c // 4; d = c * 32\n    return d\nr = go(gt)",
        "def go(c):\n    if len(c):\n        q = c // 4\n    c = c * 1\n    return q * 32\nr = go(gt)",
        "def go(all):\n    last = all[0]\n    for one in all:\n        d = one - last\n        last = one\ngo([few, few])",
        "def go(all):\n    for one in all:\n        one = one // 4\n        d = 32 * one\ngo([gt, gt])",
        "def go(all):\n    for one in all:\n        if one.max() < 8:\n            d = 32 * one\ngo([gt, few])",
    ],
)
def test_operands_that_were_others_or_may_have_been(cell):
    assert not found(cell)


def test_a_result_that_is_there_speaks_for_itself():
    assert found("c = many + many\nmany.add_(0)\nprint(c.sum())")


class Counted:
    """Stands for `syntax` in a module, and counts the nodes that are gone through."""

    def __init__(self):
        self.count = 0

    def __getattr__(self, name):
        return getattr(syntax, name)

    def walk(self, tree):
        for node in syntax.walk(tree):
            self.count += 1
            yield node


class Cells:
    """Stands for a reading with these cells, which is to end after some look at the clock."""

    deadline = 1

    def __init__(self, *texts):
        self.trees = [ast.parse(text) for text in texts]
        self.node, self.reading, self.places = self.trees[0], self, self

    def latest(self):
        return [type("File", (), {"tree": tree}) for tree in self.trees]


def test_a_text_is_gone_through_once(monkeypatch):
    counted = Counted()
    monkeypatch.setattr(undone, "syntax", counted)
    monkeypatch.setattr(undone, "thread_time", lambda: 0)
    cells: Any = Cells(*("\n".join(f"def f{i}{k}(c, b):\n    return c - b" for i in range(20)) for k in "abc"))
    for _ in range(2):
        texts = undone.texts_around(cells)
        assert [len(one.wholes) for one in texts] == [20] * 4
    assert counted.count == sum(1 for tree in cells.trees for _ in ast.walk(tree))


def test_nothing_more_is_read_when_the_time_is_spent(monkeypatch):
    counted, clock = Counted(), iter([0, 2])
    monkeypatch.setattr(undone, "syntax", counted)
    monkeypatch.setattr(undone, "thread_time", lambda: next(clock))
    cells: Any = Cells("c = a + b", "d = c - b", "e = 1")
    assert undone.texts_around(cells) is None
    assert counted.count == sum(1 for _ in ast.walk(cells.trees[0]))
