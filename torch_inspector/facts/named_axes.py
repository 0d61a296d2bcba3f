"""Views whose sizes are names of axes, in an order that no view can give."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from torch_inspector.facts import syntax
from torch_inspector.facts.viewed import sizes_written

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# After them an axis may be elsewhere than where its name was taken from.
_MOVES = frozenset(("transpose", "permute", "movedim", "swapaxes", "moveaxis", "rearrange", "einsum", "T", "mT"))
_HEADS, _STATES = 4, 3


def moved_by_names(run: Run, place: Place, text: str, owner: str, axes: int) -> str:
    """What gives the axes that a view names: `t.view(b, n, h, -1).transpose(1, 2)`; empty where no axis moves.

    Args:
        run: The cell, and those before it.
        place: The line of the view.
        text: The view as written: `t.view(b, h, n, -1)` after `b, n, d = x.shape`.
        owner: What is viewed, a name.
        axes: How many axes it has.
    """
    tree, sizes = syntax.parse(run.source_of(place.cell)), sizes_written(text)
    if tree is None or not sizes or place.line is None or not owner.isidentifier():
        return ""
    scope = syntax.scope_at(tree, place.line)
    known = _axes_named(scope, axes)
    if not known or any(_moves(one) and one.lineno < place.line for one in syntax.walk(scope)):
        return ""
    order = [known.get(one, -1) for one in sizes]
    if len(sizes) == _HEADS and axes == _STATES and order == [0, -1, 1, -1]:
        batch, count, time, size = sizes
        return f"{owner}.view({batch}, {time}, {count}, {size}).transpose(1, 2)"
    turned = sorted(order) == list(range(axes)) != order
    return f"{owner}.permute({', '.join(map(str, order))})" if turned else ""


def _axes_named(scope: ast.AST, axes: int) -> dict[str, int]:
    """`{'b': 0, 'n': 1, 'd': 2}` of `b, n, d = x.shape`, the only line of a scope that names so many axes."""
    stores = [one for one in syntax.own_statements(scope) if isinstance(one, ast.Assign) and _is_shape(one.value)]
    named = [one.targets[0].elts for one in stores if isinstance(one.targets[0], ast.Tuple)]
    names = [ast.unparse(one) for one in named[0]] if len(named) == 1 == len(stores) else []
    return dict(zip(names, range(axes), strict=True)) if len(set(names) - {"_"}) == axes == len(names) else {}


def _is_shape(node: ast.expr) -> bool:
    asked = node.func if isinstance(node, ast.Call) and not node.args else node
    return isinstance(asked, ast.Attribute) and asked.attr in ("shape", "size")


def _moves(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Name):
        return node.id in ("rearrange", "einsum")
    return isinstance(node, ast.Attribute) and node.attr in _MOVES
