"""What loops around an index go through of a tensor: all of it, or a slice, each element once."""

from __future__ import annotations

import ast

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.lengths import is_range, range_length
from torch_inspector.observe.statements import plain_stores, stores_in
from torch_inspector.observe.turns_apart import indexed

Loop = ast.For | ast.ListComp | ast.GeneratorExp
Head = ast.For | ast.comprehension
_WHOLE = ":"


def heads_of(loop: Loop) -> list[Head]:
    """The heads of loops that have nothing but the next one inside, the outer one first; none if one leaves turns out.

    Of `for i in …: for j in …: t += m[i, j]` both.
    """
    if not isinstance(loop, ast.For):
        return [] if any(one.ifs or one.is_async for one in loop.generators) else list(loop.generators)
    found: list[Head] = []
    one: ast.stmt | None = loop
    while isinstance(one, ast.For):
        if one.orelse:
            return []
        found.append(one)
        one = one.body[0] if len(one.body) == 1 else None
    return found


def covered(scope: Scope, loop: Loop, element: ast.expr, name: str, shape: Shape) -> str:
    """The part of a tensor whose elements, or rows, a loop visits, each once and in order; empty if that is not plain.

    Args:
        scope: Where the loop stands.
        loop: The outer one, if there are several.
        element: What it visits, `x[i]`, `m[i][j]` or `v`.
        name: The tensor, as written.
        shape: Its shape.

    Returns:
        `x`, or `x[1:n]` for a part of it.
    """
    heads = heads_of(loop)
    if not isinstance(element, ast.Subscript):
        visits = len(heads) == 1 and isinstance(element, ast.Name) and ast.unparse(heads[0].target) == element.id
        return name if visits and ast.unparse(heads[0].iter) == name else ""
    owner, places = indexed(element)
    counters = [ast.unparse(one.target) for one in heads]
    fits = len(heads) == len(set(counters)) and len(heads) <= len(shape) and ast.unparse(owner) == name
    if not fits or [ast.unparse(one) for one in places] != counters:
        return ""
    parts = [_part(scope, one, name, axis, shape) for axis, one in enumerate(heads)]
    if not all(parts) or any(syntax.names_in(one.iter) & set(counters) for one in heads):
        return ""
    return name if set(parts) == {_WHOLE} else f"{name}[{', '.join(parts)}]"


def _part(scope: Scope, head: Head, name: str, axis: int, shape: Shape) -> str:
    """What a `range` goes through of an axis, as a slice; empty if it may count down, or from the end."""
    bounds = head.iter.args if isinstance(head.iter, ast.Call) and is_range(head.iter) else []
    begun = len(bounds) < 2 or ast.unparse(bounds[0]) == "0"  # noqa: PLR2004
    stop = bounds[0] if len(bounds) == 1 else bounds[1] if len(bounds) > 1 else None
    if stop is None or any(isinstance(one, ast.Starred) for one in bounds):
        return ""
    by_one = len(bounds) < 3 or ast.unparse(bounds[2]) == "1"  # noqa: PLR2004
    if begun and by_one and (_is_size(scope, stop, name, axis, head) or _fits(scope, head, name, shape[axis])):
        return _WHOLE
    numbers = [_number(scope, one) for one in bounds]
    # One bound alone is above 0: the loop has turned.
    if len(bounds) > 1 and (None in numbers or min(one for one in numbers if one is not None) < 0):
        return ""
    texts = ["" if begun else ast.unparse(bounds[0]), ast.unparse(stop), *map(ast.unparse, bounds[2:])]
    return ":".join(texts[:2] if by_one else texts)


def _number(scope: Scope, bound: ast.expr) -> int | None:
    value = scope.names.value(bound)
    return value if type(value) is int else None


def _is_size(scope: Scope, bound: ast.expr, name: str, axis: int, head: Head) -> bool:
    """True for `len(x)`, `x.shape[0]`, `x.size(0)`, and a variable that was given one of these or stands for it."""
    if _says_size(bound, name, axis):
        return True
    line = head.target.lineno
    if not isinstance(bound, ast.Name):
        return False
    lines = stores_in(scope.node).get(bound.id, [])
    given = plain_stores(scope.node).get((bound.id, lines[0])) if len(lines) == 1 else None
    if given is not None and _says_size(given.value, name, axis):
        own = [at for one in syntax.names_in(_parsed(name)) for at in stores_in(scope.node).get(one, ())]
        return all(at < lines[0] < line for at in (*own, 0))
    return scope.axes_of(name, line).get(bound.id) == axis


def _says_size(bound: ast.expr, name: str, axis: int) -> bool:
    ways = [f"{name}.shape[{axis}]", f"{name}.size({axis})", f"{name}.size()[{axis}]", f"{name}.size(dim={axis})"]
    return ast.unparse(bound) in (ways if axis else [*ways, f"len({name})"])


def _fits(scope: Scope, head: Head, name: str, size: int) -> bool:
    """True if a count in a cell is that of the axis, and neither it nor the tensor is another one in other turns."""
    if scope.function or not isinstance(head.iter, ast.Call):
        return False
    stores, plain = stores_in(scope.node), plain_stores(scope.node)
    used = syntax.names_in(_parsed(name)).union(*map(syntax.names_in, head.iter.args))
    steady = all((one, line) in plain for one in used for line in stores.get(one, ()))
    return steady and range_length(scope, head.iter) == size


def _parsed(name: str) -> ast.expr:
    return syntax.expression(name) or ast.Constant(None)
