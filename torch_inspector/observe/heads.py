"""Tensors of heads (batch, heads, time, size) by the text that made them: attention, or axes that were just moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.statements import stores_in

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope

_PRODUCTS = frozenset(["matmul", "bmm", "einsum", "scaled_dot_product_attention"])
_MOVES = frozenset(["transpose", "permute", "swapaxes", "swapdims"])
# What leaves the axes as they are.
_LEAVES = frozenset(["contiguous", "clone", "float", "half", "type_as", "to", "detach", "dropout", "drop"])
_SPACES = frozenset(["torch", "F", "functional", "nn"])
_DEPTH = 6
_HEADS, _FLAT = 4, 3


def merged_heads(scope: Scope, source: ast.expr, before: Shape, after: Shape, sizes: list[str]) -> str:
    """What merges heads with every number in its place, if a view merges them past the time; empty if it does not.

    (batch, heads, time, size) cut into (batch, time, heads * size), or (batch * heads, time, size) likewise.
    """
    if len(after) != _FLAT or min(before[1:], default=0) < 2:  # noqa: PLR2004
        return ""
    whole = ", ".join(sizes)
    if len(before) == _HEADS and after == (before[0], before[2], before[1] * before[3]) and before[1] != before[2]:
        told = any(_is_product(scope, one) or _is_moved(scope, one, before) for one in _makers(scope, source))
        return f"transpose(1, 2).reshape({whole})" if told else ""
    if len(before) != _FLAT or after[1] != before[1] or before[0] == after[0] or before[0] % after[0]:
        return ""
    told = any(_is_product(scope, one) for one in _makers(scope, source))
    heads, batch = before[0] // after[0], sizes[0] if sizes[0] != "-1" else str(after[0])
    return f"view({batch}, {heads}, {before[1]}, {before[2]}).transpose(1, 2).reshape({whole})" if told else ""


def _makers(scope: Scope, source: ast.expr) -> Iterator[ast.expr]:
    """What may have made a tensor, past calls that leave its axes: the expression, and what its name was given."""
    todo = [(source, 0)]
    while todo:
        node, depth = todo.pop()
        yield node
        if depth >= _DEPTH:
            continue
        if isinstance(node, ast.Name):
            todo.extend((value, depth + 1) for value in _last_given(scope, node, source))
        elif isinstance(node, ast.Call) and syntax.last_part(node.func) in _LEAVES:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            of_module = owner is None or ast.unparse(owner) in (*_SPACES, "self")
            todo.extend((one, depth + 1) for one in (node.args[:1] if of_module else [owner]) if one is not None)


def _last_given(scope: Scope, name: ast.Name, source: ast.expr) -> list[ast.expr]:
    """What the nearest statement in front of a view gives a name; what an earlier cell gave it."""
    given = [value for value, where in scope.given(name.id) if where is scope]
    own = name.id in stores_in(scope.node)
    before = [value for value in given if value.lineno < source.lineno] if own else given[:1]
    return [value for value in before if value.lineno == max(one.lineno for one in before)]


def _is_product(scope: Scope, node: ast.expr) -> bool:
    """True for `weights @ values` and the like, of as many samples or heads on both sides."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and syntax.last_part(node.func) in _PRODUCTS:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        sides = [*node.args] if owner is None or ast.unparse(owner) in _SPACES else [owner, *node.args]
    else:
        return False
    shapes = [shape_of(scope.names.value(one)) for one in sides]
    return all(shape is None or len(shape) >= _FLAT for shape in shapes)


def _is_moved(scope: Scope, node: ast.expr, shape: Shape) -> bool:
    """True for `x.transpose(1, 2)` of (batch, time, heads, size)."""
    if not isinstance(node, ast.Call) or syntax.last_part(node.func) not in _MOVES:
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return owner is not None and shape_of(scope.names.value(owner)) == (shape[0], shape[2], shape[1], shape[3])
