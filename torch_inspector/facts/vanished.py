"""Small numbers that float16 rounds to zero, where they were to keep a division or a logarithm from it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact

# Half of the smallest number of float16: what is not above it becomes zero.
_ZERO = 2.0**-25
_FLOORS = ("clamp", "clamp_min", "maximum")


class Vanished(NamedTuple):
    """An assignment of the cell with such a number, and what came of it."""

    result: ExtremeFact
    number: str
    """As written: `1e-8`."""
    guarded: str
    """What the number stands in: `norm + 1e-8`."""
    line: int


def vanished(run: Run) -> Iterator[Vanished]:
    """Float16 variables with NaN or minus infinity that come from finite ones, past a number that is zero there."""
    tree = syntax.parse(run.cell.source) if run.after.extremes else None
    spoiled = {one.path: one for one in run.after.extremes}
    for node in tree.body if tree is not None else ():
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        result = spoiled.get(target.id) if isinstance(target, ast.Name) else None
        if result is None or result.dtype != "float16" or not isinstance(node, ast.Assign):
            continue
        names = {one.id for one in syntax.walk(node.value) if isinstance(one, ast.Name)}
        if _is_given_later(tree, {result.path, *names}, node.lineno):
            continue
        guard = _guard_in(node.value, result)
        if guard is not None and not names & {path.partition(".")[0].partition("[")[0] for path in spoiled}:
            number = next(one for one in syntax.walk(guard) if _is_small(one))
            text = ast.get_source_segment(run.cell.source, number) or ast.unparse(number)
            yield Vanished(result, text, ast.get_source_segment(run.cell.source, guard) or text, node.lineno)


def _is_given_later(tree: ast.AST | None, names: set[str], line: int) -> bool:
    """True if one of the names stands for something else when the cell has ended, or may."""
    nodes = [one for one in syntax.walk(tree) if isinstance(one, ast.Name)] if tree is not None else []
    stored = (one for one in nodes if isinstance(one.ctx, ast.Store) and one.lineno > line)
    return any(one.id in names for one in stored)


def _guard_in(value: ast.expr, result: ExtremeFact) -> ast.expr | None:
    """The divisor of a named tensor, or what is given to a logarithm, if such a number is to keep it from zero."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and result.nan_count:
        return value.right if isinstance(value.left, ast.Name) and _is_guard(value.right) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "log":
        of_torch = isinstance(value.func.value, ast.Name) and value.func.value.id == "torch"
        given = value.args[0] if of_torch and value.args else value.func.value
        return given if result.negative_inf_count and _is_guard(given) else None
    return None


def _is_guard(node: ast.expr) -> bool:
    """True for `x + 1e-8` and `x.clamp(min=1e-8)`, if nothing in them can be below zero by a difference."""
    if any(isinstance(one, (ast.Sub, ast.USub)) for one in syntax.walk(node)):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_small(node.left) or _is_small(node.right)
    floor = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FLOORS
    given = [*node.args, *(one.value for one in node.keywords)] if floor and isinstance(node, ast.Call) else []
    return any(map(_is_small, given))


def _is_small(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is float and 0 < node.value <= _ZERO
