"""Views that shift each row by one more than the row before, as relative positions do: two axes swap their sizes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import parents_of

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope

_JOINS = frozenset(["cat", "concat", "concatenate", "pad", "hstack"])
_VIEWS = frozenset(["view", "reshape", "contiguous", "clone"])
_JOINED = ("CatBackward", "ConstantPadNdBackward")
_SHOWN = ("SliceBackward", "ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward", "CloneBackward")
_FAR = 6


def may_be_skewed(scope: Scope, source: ast.expr, before: Shape, after: Shape) -> bool:
    """True if the text added a column to a tensor, or takes one away, around a view that swaps two neighbours.

    `F.pad(x, (1, 0)).view(b, h, j + 1, i)[:, :, 1:].view(b, h, i, j)`.
    """
    return _swaps_neighbours(before, after) and _is_joined(scope, source, source.lineno, set())


def _swaps_neighbours(before: Shape, after: Shape) -> bool:
    apart = [at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two]
    return len(before) == len(after) and len(apart) == 2 and apart[1] == apart[0] + 1  # noqa: PLR2004


def _is_joined(scope: Scope, node: ast.expr, line: int, seen: set[tuple[int, int, int]], depth: int = 0) -> bool:
    """True if a tensor was made longer above a line; each expression is looked at once."""
    key = (id(node), line, depth)
    if depth > _FAR or key in seen:
        return False
    seen.add(key)
    if isinstance(node, ast.Subscript):
        return _is_joined(scope, node.value, line, seen, depth + 1)
    if isinstance(node, ast.Call):
        name, owner = syntax.last_part(node.func), getattr(node.func, "value", None)
        inner = owner if name in _VIEWS else None
        return name in _JOINS or (inner is not None and _is_joined(scope, inner, line, seen, depth + 1))
    given = (
        [(one, where) for one, where in scope.given(node.id) if one is not node] if isinstance(node, ast.Name) else []
    )
    earlier = [(one, where) for one, where in given if where is not scope or one.lineno <= line]
    return any(_is_joined(where, one, one.lineno - 1, seen, depth + 1) for one, where in earlier)


def is_skewed(node: Node, before: Shape, after: Shape) -> bool:
    """The same of a view in a graph."""
    if not _swaps_neighbours(before, after):
        return False
    here = parents_of(node)[0]
    for _ in range(_FAR):
        if here is None or not type(here).__name__.startswith(_SHOWN):
            break
        here = parents_of(here)[0]
    return here is not None and type(here).__name__.startswith(_JOINED)
