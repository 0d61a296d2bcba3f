"""Losses that one line differentiates one after the other: `a.backward(); b.backward()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


class Row(NamedTuple):
    """What such a line differentiates."""

    before: tuple[str, ...]
    """What comes before the loss in question."""
    total: str
    """The sum of all."""
    count: int


def row_at(run: Run, place: Place, root: str) -> Row | None:
    """The losses of a line, if there is one before this; None where their sum would not do the same."""
    tree = syntax.parse(run.source_of(place.cell))
    nodes = syntax.walk(tree) if tree is not None else ()
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.lineno == place.line and _is_backward(node)]
    calls.sort(key=lambda call: call.end_col_offset or 0)
    losses = [call.func.value for call in calls]  # type: ignore[attr-defined]
    texts = [ast.unparse(one) for one in losses]
    if texts.count(root) != 1 or texts[0] == root or any(call.args or call.keywords for call in calls):
        return None
    total = losses[0]
    for one in losses[1:]:
        total = ast.BinOp(total, ast.Add(), one)
    return Row(tuple(texts[: texts.index(root)]), ast.unparse(total), len(texts))


def made_in_turn(run: Run, made: Place | None, place: Place) -> bool:
    """True if the innermost loop around a place holds the line that made something; without a loop, its function."""
    if made is None or made.line is None or made.scope != place.scope:
        return False
    tree, line = syntax.parse(run.source_of(place.cell)), place.line or 0
    loops = [one for one in (syntax.walk(tree) if tree else ()) if isinstance(one, (ast.For, ast.While))]
    inner = max((one for one in loops if _holds(one, line)), key=lambda one: one.lineno, default=None)
    return _holds(inner, made.line) if inner is not None else made.line <= line


def _holds(loop: ast.For | ast.While, line: int) -> bool:
    return loop.lineno <= line <= (loop.end_lineno or loop.lineno)


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
