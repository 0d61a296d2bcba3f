"""A number by the name that the user gave it: `accum_steps` for 8."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.hand_counters import hand_counters

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Values to be shown, and numbers of batches.
_SHOWN = frozenset(["item", "detach", "float", "len"])
# Nodes of what is divided that are looked at.
_NEAR = 200


def counted_by(run: Run, cell: int | None, number: int) -> str:
    """The one variable of this value that a cell counts with, in `% name` or `range(name)`; else the number itself.

    Of a counter that is compared by hand, what it is compared with.
    """
    tree = syntax.parse(run.source_of(cell))
    limits = {one.limit for one in hand_counters(tree) if one.step} if tree is not None else set[str]()
    values = _values(run)
    if len(limits) == 1 and values.get(limit := limits.pop(), {number}) == {number} and not limit.isdecimal():
        return limit
    found = sorted(name for name in counts_in(run, cell) if values.get(name) == {number})
    return found[0] if len(found) == 1 else str(number)


def counts_in(run: Run, cell: int | None) -> set[str]:
    """Variables and attributes that a cell counts with: `every` in `i % self.every`."""
    tree = syntax.parse(run.source_of(cell))
    found = (_counts(node) for node in (syntax.walk(tree) if tree is not None else ()))
    return {name for by in found if (name := getattr(by, "id", "") or getattr(by, "attr", ""))}


def is_divided_by(run: Run, cell: int | None, number: int, *, perhaps: bool = False) -> bool:
    """True if a text divides something by a number, or by what a cell counts with, other than a value to be shown.

    Args:
        run: The run.
        cell: The cell that counts.
        number: The number.
        perhaps: True if it is enough that the text does not tell the value of what it divides by: `/ self.every`.
    """
    counts, values = counts_in(run, cell), _values(run)
    nodes = list(_nodes(run))
    unknown = {_divisor(node) for node in nodes if perhaps} - {name for name in values if None not in values[name]}
    return any(_divides(node, number, counts | unknown, values) for node in nodes)


def is_parted(run: Run, cell: int | None, number: int) -> bool:
    """True if a text has `1 / every`, of what a cell counts with: samples may be weighed with it."""
    counts, values = counts_in(run, cell), _values(run)
    parts = (one for one in _nodes(run) if isinstance(one, ast.BinOp) and isinstance(one.left, ast.Constant))
    return any(one.left.value == 1 and _divides(one, number, counts, values) for one in parts)  # type: ignore[attr-defined]


def _nodes(run: Run) -> Iterator[ast.AST]:
    """The nodes of all texts so far."""
    trees = (syntax.parse(source) for source in dict.fromkeys(one.cell.source for one in (run, *run.earlier)))
    return (node for tree in trees if tree is not None for node in syntax.walk(tree))


def _divides(node: ast.AST, number: int, counts: set[str], values: dict[str, set[object]]) -> bool:
    by, name = _by(node), _divisor(node)
    fits = (
        (name in counts and bool(name))
        or number in values.get(name, ())
        or (isinstance(by, ast.Constant) and by.value == number)
    )
    inside = islice(ast.walk(getattr(node, "left", node)), _NEAR) if fits else ()
    return fits and not any(getattr(one, "attr", getattr(one, "id", "")) in _SHOWN for one in inside)


def _by(node: ast.AST) -> ast.expr | None:
    whole = isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div)
    return getattr(node, "right", getattr(node, "value", None)) if whole else None


def _divisor(node: ast.AST) -> str:
    """The variable or attribute that something is divided by; empty for anything else."""
    by = _by(node)
    return getattr(by, "id", "") or getattr(by, "attr", "")


def is_of_value(run: Run, by: ast.expr, number: int) -> bool:
    """True for a number itself, and for a variable that the texts so far gave it and nothing else."""
    if isinstance(by, ast.Constant):
        return type(by.value) in (int, float) and by.value == number
    return isinstance(by, ast.Name) and _values(run).get(by.id) == {number}


def _values(run: Run) -> dict[str, set[object]]:
    values: dict[str, set[object]] = {}
    for one in (*run.earlier, run):
        for name, value in _given(syntax.parse(one.cell.source)):
            values.setdefault(name, set()).add(value)
    return values


def _counts(node: ast.AST) -> ast.expr | None:
    by: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        by = node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        by = node.args[0] if len(node.args) == 1 else None
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.GtE)):
        by = node.comparators[0]
    return by


def _given(tree: ast.Module | None) -> Iterator[tuple[str, object]]:
    """Variables at the top of a cell and what they are given, None where that is no number; also of tuples."""
    for node in syntax.own_statements(tree) if tree is not None else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        value = node.value if isinstance(node, ast.Assign) else None
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        yield from (
            (a.id, b.value if isinstance(b, ast.Constant) else None) for a, b in pairs if isinstance(a, ast.Name)
        )
