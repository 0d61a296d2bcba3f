"""Bounds of ranges that no variable tells any more: told by what was made as large, or by the code of a function."""

from __future__ import annotations

import ast
from typing import Any

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.pairs import called
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import plain_stores, stores_in

_MADE = frozenset(["zeros", "empty", "ones", "full"])


def bound_of(scope: Scope, bound: ast.expr) -> int:
    """A size that two places of a function are given in the same words; 0 if nothing tells it."""
    text = ast.unparse(bound)
    for (name, _), given in plain_stores(scope.node).items():
        sizes = _sizes(given.value)
        if text not in sizes or _changes(scope, given, bound) or len(stores_in(scope.node)[name]) != 1:
            continue
        if shape := _shape_later(scope, name):
            return shape[sizes.index(text)] if len(shape) == len(sizes) else 0
    return _size_of_result(scope, bound)


def _changes(scope: Scope, given: ast.Assign, bound: ast.expr) -> bool:
    """True if a name in a bound is given a value after what was made as large, or more than once."""
    names = {one.id for one in syntax.walk(bound) if isinstance(one, ast.Name)}
    stores = [lines for name, lines in stores_in(scope.node).items() if name in names]
    return any(len(lines) > 1 or lines[0] >= given.lineno for lines in stores)


def _sizes(value: ast.expr) -> list[str]:
    """What `torch.zeros(n, m)` and `torch.zeros((n, m))` are given, as written."""
    if not isinstance(value, ast.Call) or dotted(value.func).rpartition(".")[2] not in _MADE or not value.args:
        return []
    first = value.args[0]
    if isinstance(first, (ast.Tuple, ast.List)):
        return [ast.unparse(one) for one in first.elts]
    return [] if dotted(value.func).endswith("full") else [ast.unparse(one) for one in value.args]


def _shape_later(scope: Scope, name: str) -> Shape | None:
    """Shape of a variable that lives, or that the function gave back to one that does."""
    if not scope.function:
        return _shape(scope.reading.names.get(name))
    returns = [one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.Return)]
    caller = scope.caller
    if caller is None or caller.function or len(returns) != 1 or dotted(returns[0].value or ast.Pass()) != name:
        return None
    for (target, _), given in plain_stores(caller.node).items():
        if _is_call(given.value, scope) and len(stores_in(caller.node)[target]) == 1:
            return _shape(caller.reading.names.get(target))
    return None


def _is_call(value: ast.expr, scope: Scope) -> bool:
    """True for the very call that a function is read for."""
    given = [*value.args, *(one.value for one in value.keywords)] if isinstance(value, ast.Call) else []
    named = isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == scope.function
    return named and {id(one) for one in scope.arguments.values()} == {id(one) for one in given}


def _shape(value: Any) -> Shape | None:
    return shape_of(value) if is_tensor(value) else None


def _size_of_result(scope: Scope, bound: ast.expr) -> int:
    """`rows.size(0)`, `rows.shape[0]` or `len(rows)` of what the call gave, which another function has made."""
    name, axis = _asked(bound)
    given, caller = scope.arguments.get(name), scope.caller
    if not isinstance(given, ast.Call) or caller is None or name in stores_in(scope.node):
        return 0
    shapes = [shape for shape in _returned(caller, given) if shape is not None]
    fits = len(shapes) == 1 and axis < len(shapes[0])
    return max(shapes[0][axis], 0) if fits else 0


def _returned(caller: Scope, call: ast.Call) -> list[Shape | None]:
    """Shapes of what a function of the user's gives back, where it does so in one place."""
    found: list[Shape | None] = []
    for node, names in called(call, caller.names, caller.reading.tree_of):
        returns = [one for one in syntax.own_expressions(node) if isinstance(one, ast.Return)]
        found.extend(shape_of(names.value(one.value)) for one in returns if one.value is not None)
    return found


def _asked(bound: ast.expr) -> tuple[str, int]:
    """The tensor and the axis whose size an expression is."""
    if isinstance(bound, ast.Subscript) and isinstance(bound.value, ast.Attribute) and bound.value.attr == "shape":
        return dotted(bound.value.value), _number(bound.slice)
    if not isinstance(bound, ast.Call) or len(bound.args) != 1:
        return "", 0
    if isinstance(bound.func, ast.Attribute) and bound.func.attr == "size":
        return dotted(bound.func.value), _number(bound.args[0])
    return (dotted(bound.args[0]), 0) if dotted(bound.func) == "len" else ("", 0)


def _number(node: ast.expr) -> int:
    known = isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0
    return node.value if known else 1 << 30  # type: ignore[attr-defined]
