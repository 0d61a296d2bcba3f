"""What a variable of a function is after the cell, where the function gives it back and the cell keeps it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe.statements import stores_in

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def given_back_as(tree: ast.Module, name: str, line: int, names: Mapping[str, Any]) -> Any:
    """What `x, y = prepare(…)` keeps of a function that ends with `return x, y`; None if that is not sure.

    Args:
        tree: The cell; the function and the call stand in it.
        name: A variable of the function.
        line: A statement of the function's own that always runs; what the variable is must not change after it.
        names: What the user's names stand for after the cell.
    """
    scope = syntax.function_around(tree, line)
    if scope is None or not any(isinstance(one, ast.Expr) and one.lineno == line for one in scope.body):
        return None
    places = {_place_in(one.value, name) for one in syntax.own_expressions(scope) if isinstance(one, ast.Return)}
    given = max(stores_in(scope).get(name, [0]), default=0)
    early = any(isinstance(one, ast.Return) and one.lineno < line for one in syntax.own_expressions(scope))
    if len(places) != 1 or places == {None} or given > line or early:
        return None
    place = places.pop()
    kept = (_target(one, scope.name, place) for one in syntax.own_statements(tree))
    known = [one for one in kept if one and len(stores_in(tree).get(one, ())) == 1]
    return names.get(known[0]) if len(known) == 1 else None


def _place_in(value: ast.expr | None, name: str) -> int | None:
    """Which part of a result a variable is, -1 for all of it; None if it is not in it."""
    parts = value.elts if isinstance(value, ast.Tuple) else []
    found = next((at for at, one in enumerate(parts) if isinstance(one, ast.Name) and one.id == name), None)
    return -1 if isinstance(value, ast.Name) and value.id == name else found


def _target(statement: ast.stmt, function: str, place: int | None) -> str:
    """The variable that a statement gives that part of what the function returns; empty if there is none."""
    call = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(call, ast.Call) or place is None:
        return ""
    if syntax.last_part(call.func) != function:
        return ""
    target: ast.expr | None = statement.targets[0]
    if place >= 0:
        parts = target.elts if isinstance(target, ast.Tuple) else []
        target = parts[place] if place < len(parts) else None
    return target.id if isinstance(target, ast.Name) else ""
