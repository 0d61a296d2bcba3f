"""What a function was given and gave back as it was: `b = clip(b)`, where what it got has no name any more."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe.statements import stores_in

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope


def handed_back(scope: Scope, call: ast.expr, function: ast.AST) -> dict[str, Any]:
    """The parameter that a function of the user's always gives back, and the object that the cell has kept of it.

    Args:
        scope: Of the call; only of the cell itself the variables are still there.
        call: The call.
        function: The function that it runs.
    """
    statement = _whole(scope.node, call) if not scope.function and isinstance(call, ast.Call) else None
    name = statement.targets[0].id if statement is not None and isinstance(statement.targets[0], ast.Name) else ""
    parameter = _returned(function) if name else ""
    rebinders = scope.reading.rebinders
    if statement is None or not parameter or rebinders.any_name or name in rebinders.names:
        return {}
    is_last = max(stores_in(scope.node).get(name, [0])) == statement.lineno
    return {parameter: scope.reading.names[name]} if is_last and name in scope.reading.names else {}


def _whole(tree: ast.AST, call: ast.Call) -> ast.Assign | None:
    """The statement `name = …` whose whole value a call is."""
    parent = syntax.parents(tree).get(id(call))
    return parent if isinstance(parent, ast.Assign) and parent.value is call and len(parent.targets) == 1 else None


@lru_cache(maxsize=128)
def _returned(function: ast.AST) -> str:
    """The parameter that all ways out of a function give back, and that nothing gives another value; else empty."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return ""
    parts = list(syntax.own_expressions(function))
    values = {ast.unparse(one.value) if one.value else "" for one in parts if isinstance(one, ast.Return)}
    name = values.pop() if len(values) == 1 else ""
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in parts)
    kept = name in syntax.parameters_of(function) and name not in stores_in(function)
    return name if kept and not yields and not _may_be_anew(function, name) else ""


def _may_be_anew(function: ast.FunctionDef, name: str) -> bool:
    """True if an inner function may give the parameter another value."""
    return any(isinstance(one, ast.Nonlocal) and name in one.names for one in syntax.walk(function))
