"""The axis along which the text adds up what a name was given for: `0` of `(w * h).sum(0)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


def added_along(run: Run, place: Place, name: str, rank: int) -> int | None:
    """The axis, counted from the front; None if there is none, or if there are several.

    Args:
        run: The cell.
        place: Where the name gets its value.
        name: Of weights that are to sum to 1.
        rank: The axes that they have.
    """
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None or place.line is None or not name.isidentifier():
        return None
    nodes = syntax.own_expressions(syntax.scope_at(tree, place.line))
    found = {syntax.axis_named(node) for node in nodes if isinstance(node, ast.Call) and _adds_up(node, name)}
    axis = found.pop() if len(found) == 1 else None
    return None if axis is None or not -rank <= axis < rank else axis % rank


def _adds_up(node: ast.Call, name: str) -> bool:
    """True for a sum of a product with the name, or over its own numbers."""
    method = node.func if isinstance(node.func, ast.Attribute) and node.func.attr == "sum" else None
    if method is None:
        return False
    of_torch = isinstance(method.value, ast.Name) and method.value.id == "torch"
    given = next(iter(node.args), None) if of_torch else method.value
    sides = [given.left, given.right] if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult) else []
    return any(isinstance(one, ast.Name) and one.id == name for one in sides)
