"""What a loop over the elements of a tensor does, in one call."""

from __future__ import annotations

import ast
from typing import Any

from torch_inspector.observe.rows_of_numbers import is_number
from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns import last_name
from torch_inspector.observe.turns_apart import indexed

Loop = ast.For | ast.ListComp | ast.GeneratorExp
_VIEWS = frozenset(["view", "reshape", "flatten", "ravel", "detach", "cpu", "squeeze", "t"])
_ROWS = {"max": "amax", "min": "amin", "sum": "sum"}


def at_once(loop: Loop, name: str, axes: int, value: Any) -> str:
    """The same in one call, where the loop does one thing of a form that is known; else empty.

    Args:
        loop: A loop that visits the elements of a tensor.
        name: The tensor, as written.
        axes: How many axes it has.
        value: The tensor itself, or what is known of it.
    """
    body: list[ast.stmt] = loop.body if isinstance(loop, ast.For) else []
    while len(body) == 1 and isinstance(body[0], ast.For):
        body = body[0].body
    one = body[0] if len(body) == 1 else None
    if isinstance(loop, ast.For) and one is None:
        return ""
    given = getattr(one, "value", None) if isinstance(loop, ast.For) else loop.elt
    if isinstance(given, ast.Call) and last_name(given.func) == "append" and len(given.args) == 1:
        return _listed(given.args[0], name, loop, axes, value)
    if isinstance(given, ast.Call) and dotted(given.func) in _ROWS and len(given.args) == 1:
        row = given.args[0]
        return f"{name}.{_ROWS[dotted(given.func)]}(-1)" if isinstance(row, ast.Subscript) else ""
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add):
        return _added(given, name, loop, axes)
    return _listed(given, name, loop, axes, value) if isinstance(loop, ast.ListComp) else ""


def _listed(given: ast.expr | None, name: str, loop: Loop, axes: int, value: Any) -> str:
    """All numbers of a tensor of one axis, or its rows, in a list."""
    element = _bare(given)
    if given is None or element is None or _depth(element, name, loop) != 1:
        return ""
    if element is given:
        return f"list({name}.unbind())"
    return f"{name}.tolist()" if axes == 1 and is_number(given, ast.unparse(element), value) else ""


def _added(given: ast.expr | None, name: str, loop: Loop, axes: int) -> str:
    element = _bare(given)
    depth = _depth(element, name, loop) if element is not None else 0
    return f"{name}.sum()" if depth == axes else f"{name}.sum(0)" if depth == 1 else ""


def _bare(value: ast.expr | None) -> ast.expr | None:
    """`x[i]` of `x[i].item()`, `float(x[i])`, `x[i]`; None for anything else that is called."""
    while isinstance(value, ast.Call):
        plain = isinstance(value.func, ast.Attribute) and value.func.attr == "item"
        number = dotted(value.func) in ("float", "int") and len(value.args) == 1
        value = value.func.value if plain else value.args[0] if number else None  # type: ignore[attr-defined]
    return value


def _depth(element: ast.expr, name: str, loop: Loop) -> int:
    """How many axes an index of the loop picks from, 1 for `v` and `x[i]`; 0 if it is no element of the tensor."""
    if isinstance(element, ast.Subscript):
        owner, indices = indexed(element)
        return len(indices) if ast.unparse(owner) == name else 0
    head = loop if isinstance(loop, ast.For) else loop.generators[0]
    visited = isinstance(element, ast.Name) and ast.unparse(head.target) == element.id
    return int(visited and ast.unparse(head.iter) == name)


def viewed(expression: ast.expr) -> ast.expr:
    """`x` for `x.view(-1)`."""
    plain = isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute)
    return expression.func.value if plain and expression.func.attr in _VIEWS else expression  # type: ignore[attr-defined]
