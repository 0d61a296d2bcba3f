"""What a loop over the elements of a tensor does, in one call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.covered import Loop, covered, heads_of
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.rows_of_numbers import is_number, is_whole
from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns import last_name
from torch_inspector.observe.turns_apart import indexed

_VIEWS = frozenset(["view", "reshape", "flatten", "ravel", "detach", "cpu", "squeeze", "t"])
_ROWS = {"max": "amax", "min": "amin", "sum": "sum"}
# Gives the part of the tensor that the loops around an element go through, empty if that is not plain.
_Part = Callable[[ast.expr], str]


def at_once(scope: Scope, loop: Loop, name: str, shape: Shape, value: Any) -> str:
    """The same in one call, where the loop does one thing of a form that is known; else empty.

    Args:
        scope: Where the loop stands.
        loop: A loop that visits the elements of a tensor.
        name: The tensor, as written.
        shape: Its shape.
        value: The tensor itself, or what is known of it.
    """
    heads = heads_of(loop)
    body = getattr(heads[-1], "body", []) if heads else []
    one = body[0] if len(body) == 1 else None
    given = getattr(one, "value", None) if isinstance(loop, ast.For) else loop.elt
    if not heads or given is None:
        return ""

    def part(element: ast.expr) -> str:
        return covered(scope, loop, element, name, shape)

    if isinstance(given, ast.Call) and last_name(given.func) == "append" and len(given.args) == 1:
        return _listed(given.args[0], part, len(shape), value)
    if isinstance(given, ast.Call) and dotted(given.func) in _ROWS and len(given.args) == 1:
        return _of_rows(given, one, part, len(shape))
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add):
        return "" if _is_apart(one, given) else _added(given, part, len(shape), value)
    return _listed(given, part, len(shape), value) if isinstance(loop, ast.ListComp) else ""


def _listed(given: ast.expr, part: _Part, axes: int, value: Any) -> str:
    """All numbers of a tensor of one axis, or its rows, in a list."""
    element = _bare(given)
    whole = part(element) if element is not None and _depth(element) == 1 else ""
    if not whole or element is given or element is None:
        return f"list({whole}.unbind())" if whole else ""
    return f"{whole}.tolist()" if axes == 1 and is_number(given, ast.unparse(element), value) else ""


def _added(given: ast.expr, part: _Part, axes: int, value: Any) -> str:
    element = _bare(given)
    whole = part(element) if element is not None else ""
    if not whole or element is None or (_is_cut(given) and not is_whole(value)):
        return ""
    depth = _depth(element)
    return f"{whole}.sum()" if depth == axes else f"{whole}.sum(0)" if depth == 1 else ""


def _is_apart(one: ast.AugAssign, given: ast.expr) -> bool:
    """True for `total[i] += x[i]`, which adds to a place of its own on each turn."""
    element = _bare(given)
    places = indexed(element)[1] if isinstance(element, ast.Subscript) else [element] if element is not None else []
    return bool(set(syntax.names_in(one.target)) & {name for place in places for name in syntax.names_in(place)})


def _of_rows(given: ast.Call, one: ast.stmt | None, part: _Part, axes: int) -> str:
    """`m.amax(-1)` for `out[i] = max(m[i])` and the like, and the sum of it for `total += max(m[i])`."""
    row = given.args[0]
    whole = part(row) if isinstance(row, ast.Subscript) and _depth(row) == axes - 1 else ""
    if not whole:
        return ""
    made = f"{whole}.{_ROWS[dotted(given.func)]}(-1)"
    if isinstance(one, ast.AugAssign):
        return f"{made}.sum()" if isinstance(one.op, ast.Add) and isinstance(one.target, ast.Name) else ""
    target = one.targets[0] if isinstance(one, ast.Assign) else row
    places = indexed(target)[1] if isinstance(target, ast.Subscript) else []
    same = [ast.unparse(each) for each in places] == [ast.unparse(each) for each in indexed(row)[1]]  # type: ignore[arg-type]
    return made if same else ""


def _bare(value: ast.expr | None) -> ast.expr | None:
    """`x[i]` of `x[i].item()`, `float(x[i])`, `x[i]`; None for anything else that is called."""
    while isinstance(value, ast.Call):
        plain = isinstance(value.func, ast.Attribute) and value.func.attr == "item"
        number = dotted(value.func) in ("float", "int") and len(value.args) == 1
        value = value.func.value if plain else value.args[0] if number else None  # type: ignore[attr-defined]
    return value


def _is_cut(given: ast.expr) -> bool:
    """True for `int(x[i])`, which leaves out what is behind the point."""
    return any(isinstance(one, ast.Call) and dotted(one.func) == "int" for one in ast.walk(given))


def _depth(element: ast.expr) -> int:
    """How many axes an element picks from, 1 for `v` and `x[i]`."""
    return len(indexed(element)[1]) if isinstance(element, ast.Subscript) else 1


def viewed(expression: ast.expr) -> ast.expr:
    """`x` for `x.view(-1)`."""
    plain = isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute)
    return expression.func.value if plain and expression.func.attr in _VIEWS else expression  # type: ignore[attr-defined]
