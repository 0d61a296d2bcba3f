"""What a loop over the elements of a tensor does, in one call."""

from __future__ import annotations

import ast

from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns import last_name
from torch_inspector.observe.turns_apart import indexed

Loop = ast.For | ast.ListComp | ast.GeneratorExp
_ROWS = {"max": "amax", "min": "amin", "sum": "sum"}


def at_once(loop: Loop, name: str) -> str:
    """The same in one call, where the loop does one thing of a form that is known; else empty."""
    if isinstance(loop, ast.ListComp) and isinstance(loop.elt, ast.ListComp):
        return _of_rows(loop, loop.elt, name)
    return _of_elements(loop, name)


def _of_elements(loop: Loop, name: str) -> str:
    body: list[ast.stmt] = loop.body if isinstance(loop, ast.For) else []
    while len(body) == 1 and isinstance(body[0], ast.For):
        body = body[0].body
    one = body[0] if len(body) == 1 else None
    if isinstance(loop, ast.For) and one is None:
        return ""
    value = getattr(one, "value", None) if isinstance(loop, ast.For) else loop.elt
    if isinstance(value, ast.Call) and last_name(value.func) == "append" and len(value.args) == 1:
        return f"{name}.tolist()" if _is_one(value.args[0], name, loop) else ""
    if isinstance(value, ast.Call) and dotted(value.func) in _ROWS and len(value.args) == 1:
        row = value.args[0]
        return f"{name}.{_ROWS[dotted(value.func)]}(-1)" if isinstance(row, ast.Subscript) else ""
    if value is None or not _is_one(value, name, loop):
        return ""
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add):
        return f"{name}.sum()"
    return f"{name}.tolist()" if isinstance(loop, ast.ListComp) else ""


def _of_rows(loop: ast.ListComp, inner: ast.ListComp, name: str) -> str:
    """`ids.tolist()` for `[[i.item() for i in row] for row in ids]`."""
    rows = [(one.iter, one.target) for each in (loop, inner) for one in each.generators if not one.ifs]
    plain = len(rows) == 2 and ast.unparse(rows[0][1]) == ast.unparse(rows[1][0])  # noqa: PLR2004
    whole = plain and at_once(inner, ast.unparse(rows[1][0])).endswith(".tolist()")
    return f"{name}.tolist()" if whole and ast.unparse(rows[0][0]) == name else ""


def _is_one(value: ast.expr, name: str, loop: Loop) -> bool:
    """True for the element that the loop visits, or its number: `x[i]`, `x[i].item()`, `float(x[i])`, `v`."""
    while isinstance(value, ast.Call):
        plain = isinstance(value.func, ast.Attribute) and value.func.attr == "item"
        if plain:
            value = value.func.value  # type: ignore[attr-defined]
        elif dotted(value.func) in ("float", "int") and len(value.args) == 1:
            value = value.args[0]
        else:
            return False
    if isinstance(value, ast.Subscript):
        return ast.unparse(indexed(value)[0]) == name
    head = loop if isinstance(loop, ast.For) else loop.generators[0]
    return isinstance(value, ast.Name) and ast.unparse(head.target) == value.id and ast.unparse(head.iter) == name
