"""Loops over elements that are a call of torch written out: a product row by row, a table of counts, distances."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.lengths import is_range, range_length
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns_apart import indexed

# With R and S for a row of each side.
_SQUARES = (
    "((R - S) ** 2).sum()", "(R - S).pow(2).sum()", "(R - S).square().sum()", "torch.sum((R - S) ** 2)",
    "torch.sum((R - S).pow(2))", "torch.pow(R - S, 2).sum()",
)  # fmt: skip
_NORMS = ("torch.norm(R - S)", "(R - S).norm()", "torch.dist(R, S)", "torch.linalg.norm(R - S)", "(R - S).norm(2)")
_ROOTS = (*_NORMS, *(root.format(one) for one in _SQUARES for root in ("{}.sqrt()", "torch.sqrt({})", "{} ** 0.5")))
_ABSOLUTE = ("(R - S).abs().sum()", "torch.abs(R - S).sum()", "torch.sum(torch.abs(R - S))")
_DISTANCES = {
    **dict.fromkeys(_SQUARES, "torch.cdist({}, {}) ** 2"),
    **dict.fromkeys(_ROOTS, "torch.cdist({}, {})"),
    **dict.fromkeys(_ABSOLUTE, "torch.cdist({}, {}, p=1)"),
}
_PRODUCTS = frozenset(["R @ S", "torch.mm(R, S)", "torch.matmul(R, S)", "R.mm(S)", "R.matmul(S)"])
_DOTS = frozenset(["R @ S", "torch.dot(R, S)", "R.dot(S)", "(R * S).sum()", "torch.sum(R * S)"])
_MATRICES, _ROWS = 3, 2


class Known(NamedTuple):
    """What such a loop is, in one statement, and what it writes to."""

    text: str
    written: str


def known_loop(scope: Scope, loop: ast.AST) -> Known | None:
    """The statement in the place of a loop; None for any loop that is not exactly of such a form."""
    if not isinstance(loop, ast.For) or len(loop.body) != 1 or loop.orelse:
        return None
    one = loop.body[0]
    if isinstance(one, ast.AugAssign):
        return _counts(scope, loop, one)
    if isinstance(one, ast.For) and len(one.body) == 1 and not one.orelse:
        return _distances(scope, loop, one)
    return _products(scope, loop, one)


def _products(scope: Scope, loop: ast.For, one: ast.stmt) -> Known | None:
    """`out[i] = a[i] @ b[i]`."""
    name, length = _counter(scope, loop)
    stored = _stored(one, [name])
    if stored is None or not name:
        return None
    sides, form = _sides(stored[1], [name])
    shapes = [_shape(scope, side) for side in sides]
    whole = [_shape(scope, stored[0]), *shapes]
    if len(sides) != 2 or any(not shape or shape[0] != length for shape in whole):  # noqa: PLR2004
        return None
    axes, (left, right) = {len(shape or ()) for shape in shapes}, map(ast.unparse, sides)
    target = ast.unparse(stored[0])
    if form in _PRODUCTS and axes == {_MATRICES}:
        return Known(f"{target} = {left} @ {right}", target)
    return Known(f"{target} = ({left} * {right}).sum(1)", target) if form in _DOTS and axes == {_ROWS} else None


def _distances(scope: Scope, loop: ast.For, inner: ast.For) -> Known | None:
    """`dist[i, j] = (a[i] - b[j]).norm()` in two loops."""
    (first, rows), (second, columns) = _counter(scope, loop), _counter(scope, inner)
    stored = _stored(inner.body[0], [first, second])
    if stored is None or not first or not second or first == second:
        return None
    sides, form = _sides(stored[1], [first, second])
    if len(sides) != 2 or form not in _DISTANCES or any(_is_whole(scope, side) for side in sides):  # noqa: PLR2004
        return None
    one, two = (_shape(scope, side) for side in sides)
    if not one or not two or len(one) != _ROWS or len(two) != _ROWS or _shape(scope, stored[0]) != (rows, columns):
        return None
    target, said = ast.unparse(stored[0]), _DISTANCES[form].format(*map(ast.unparse, sides))
    return Known(f"{target} = {said}", target) if (one[0], two[0]) == (rows, columns) else None


def _counts(scope: Scope, loop: ast.For, one: ast.AugAssign) -> Known | None:
    """`table[t, p] += 1` for `t, p in zip(labels, predictions)`, or with `labels[i]`, `predictions[i]`."""
    plain = isinstance(one.op, ast.Add) and isinstance(one.value, ast.Constant) and one.value.value == 1
    if not plain or not isinstance(one.target, ast.Subscript):
        return None
    table, places = indexed(one.target)
    sources = [_listed(scope, loop, _bare(place)) for place in places]
    shape = _shape(scope, table)
    lines = [_flat(scope, source) for source in sources if source is not None]
    if not shape or len(shape) != 2 or len(places) != 2 or len(lines) != 2 or "" in lines:  # noqa: PLR2004
        return None
    if len({_shape(scope, _parsed(line)) for line in lines}) != 1 or not dotted(table):
        return None
    rows, columns = shape
    target = ast.unparse(table)
    index = f"{lines[0]} * {columns} + {lines[1]}"
    counted = f"torch.bincount({index}, minlength={rows * columns}).view({rows}, {columns})"
    return Known(f"{target} += {counted}", target)


def _counter(scope: Scope, loop: ast.For) -> tuple[str, int]:
    """The variable of a loop over `range(n)`, and n."""
    plain = isinstance(loop.target, ast.Name) and is_range(loop.iter) and len(loop.iter.args) == 1  # type: ignore[attr-defined]
    return (loop.target.id, range_length(scope, loop.iter)) if plain else ("", 0)  # type: ignore[attr-defined]


def _stored(one: ast.stmt, counters: list[str]) -> tuple[ast.expr, ast.expr] | None:
    """What a statement writes at the place of the counters, and the value."""
    if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Subscript):
        return None
    owner, places = indexed(one.targets[0])
    return (owner, one.value) if [dotted(place) for place in places] == counters and dotted(owner) else None


def _sides(value: ast.expr, counters: list[str]) -> tuple[list[ast.expr], str]:
    """The tensors whose rows a value is made of, one row for each counter or two for one; and it with R and S."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "item":
        value = value.func.value
    rows = [one for one in syntax.walk(value) if isinstance(one, ast.Subscript)]
    rows.sort(key=lambda one: (one.lineno, one.col_offset))
    wanted = counters if len(counters) > 1 else counters * 2
    if [dotted(row.slice) for row in rows] != wanted or not all(dotted(row.value) for row in rows):
        return [], ""
    text = ast.unparse(value)
    for row, letter in zip(rows, "RS", strict=True):
        text = text.replace(ast.unparse(row), letter, 1)
    return [row.value for row in rows], text


def _is_whole(scope: Scope, side: ast.expr) -> bool:
    """True for whole numbers, of which torch tells no distance."""
    value = scope.names.value(side)
    return is_tensor(value) and not value.is_floating_point()


def _listed(scope: Scope, loop: ast.For, place: ast.expr) -> ast.expr | None:
    """The tensor whose elements a name or `labels[i]` stands for in the turns of a loop."""
    if isinstance(place, ast.Subscript):
        name, length = _counter(scope, loop)
        shape = _shape(scope, place.value)
        fits = bool(name) and dotted(place.slice) == name and shape == (length,)
        return place.value if fits else None
    zipped = isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "zip" and isinstance(loop.target, ast.Tuple)
    if not zipped:
        return None
    pairs = zip(loop.target.elts, loop.iter.args, strict=False)  # type: ignore[attr-defined]
    return next((source for target, source in pairs if dotted(target) == dotted(place) != ""), None)


def _bare(place: ast.expr) -> ast.expr:
    """`t` for `t.long()`, `t.item()` and `int(t)`."""
    if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) and not place.args:
        return place.func.value if place.func.attr in ("long", "item", "int") else place
    return place.args[0] if isinstance(place, ast.Call) and dotted(place.func) == "int" and place.args else place


def _flat(scope: Scope, source: ast.expr) -> str:
    """A line of whole numbers as written, without a `view` that changes nothing; empty for any other tensor."""
    views = ("view", "flatten", "ravel", "reshape")
    viewed = isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr in views
    inner: ast.expr = source.func.value if viewed else source  # type: ignore[attr-defined]
    value = scope.names.value(inner)
    fits = dotted(inner) and is_tensor(value) and not value.is_floating_point() and len(shape_of(value) or ()) == 1
    return ast.unparse(inner) if fits else ""


def _parsed(text: str) -> ast.expr:
    return syntax.expression(text) or ast.Constant(None)


def _shape(scope: Scope, expression: ast.expr) -> Shape | None:
    value = scope.names.value(expression) if dotted(expression) else None
    return shape_of(value) if tensor_or_shape(value) else None
