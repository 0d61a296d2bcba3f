"""Sizes of a view that are, by the text, those of the tensor itself: `x.view(b * t, c)` after `b, c, t = x.shape`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope

# A size of which nothing is told, and one that takes what is left.
_LEFT = "-1"
_DEPTH = 3


def axis_of(scope: Scope, source: ast.expr, size: ast.expr) -> int | None:
    """Which axis of the source a size is."""
    text = ast.unparse(source)
    if isinstance(size, ast.Name):
        return scope.axes_of(text, size.lineno).get(size.id)
    if isinstance(size, ast.Subscript) and ast.unparse(size.value) == f"{text}.shape":
        return size.slice.value if isinstance(size.slice, ast.Constant) and type(size.slice.value) is int else None
    if isinstance(size, ast.Call) and ast.unparse(size.func) == f"{text}.size" and len(size.args) == 1:
        index = size.args[0]
        return index.value if isinstance(index, ast.Constant) and type(index.value) is int else None
    return None


def order_of(scope: Scope, source: ast.expr, sizes: list[ast.expr], axes: int) -> list[int]:
    """The axes of a tensor in the order in which the sizes of a view name them; empty unless each is named once.

    Args:
        scope: Where the view stands.
        source: The tensor.
        sizes: Those of the view, as written; one may be -1.
        axes: How many the tensor has.
    """
    groups = [_axes_in(scope, source, size) for size in sizes]
    left = [at for at, size in enumerate(sizes) if ast.unparse(size) == _LEFT]
    named = [axis for at, group in enumerate(groups) if at not in left for axis in group or [-1]]
    if len(left) > 1 or len(set(named)) != len(named) or any(not 0 <= axis < axes for axis in named):
        return []
    rest = [axis for axis in range(axes) if axis not in named]
    if bool(rest) is not bool(left):
        return []
    found = [rest if at in left else sorted(group) for at, group in enumerate(groups)]
    return [axis for group in found for axis in group]


def _axes_in(scope: Scope, source: ast.expr, size: ast.expr, depth: int = 0) -> list[int]:
    """The axes of which a size is the product; empty if that is not told."""
    if isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult):
        sides = [_axes_in(scope, source, side, depth) for side in (size.left, size.right)]
        return [*sides[0], *sides[1]] if all(sides) else []
    axis = axis_of(scope, source, size)
    if axis is not None:
        return [axis]
    given = scope.given(size.id) if isinstance(size, ast.Name) and depth < _DEPTH else []
    plain = len(given) == 1 and given[0][1] is scope
    return _axes_in(scope, source, given[0][0], depth + 1) if plain else []
