"""Whether what a line makes is given to a model, as its input, and not to the loss beside what the model says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from collections.abc import Collection

# Assignments that a value is followed through.
_STEPS = 6


def goes_into(source: str, line: int | None, text: str, models: Collection[str], current: str) -> bool:
    """True if a call of one of some models takes what the statement of a line makes, or the function around it returns.

    Args:
        source: Text of a cell.
        line: Of the statement.
        text: The part of it that is followed, where the statement itself calls the model.
        models: What the text calls the models.
        current: Text of the cell that ran, where a function is called that returns the value.
    """
    tree = syntax.parse(source)
    if tree is None or line is None:
        return False
    scope = syntax.scope_at(tree, line)
    own = [one for one in syntax.own_statements(scope) if syntax.spans(one, line)]
    made = max(own, key=lambda one: one.lineno, default=None)
    if made is None:
        return False
    if any(ast.unparse(call.func) in models and text in ast.unparse(call) for call in _calls(made)):
        return True
    names = _names(made)
    if isinstance(scope, syntax.FUNCTIONS) and isinstance(made, ast.Return):
        names, scope = {scope.name}, syntax.parse(current) or tree
    for _ in range(_STEPS):
        names |= {new for one in syntax.own_statements(scope) if _reads(one, names) for new in _names(one)}
    return any(_is_given(call, names, models) for call in _calls(scope))


def _calls(node: ast.AST) -> list[ast.Call]:
    return [one for one in syntax.walk(node) if isinstance(one, ast.Call)]


def _names(node: ast.stmt) -> set[str]:
    """Variables that an assignment gives a value, and lists that a call appends to."""
    if isinstance(node, ast.Assign):
        return set[str]().union(*map(syntax.names_in, node.targets))
    method = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    appends = isinstance(method, ast.Attribute) and method.attr == "append"
    return {syntax.root_of(method.value)} if appends and isinstance(method, ast.Attribute) else set()


def _reads(node: ast.AST, names: set[str]) -> bool:
    value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.Expr)) else None
    return value is not None and _mentions(value, names)


def _mentions(node: ast.AST, names: set[str]) -> bool:
    own = syntax.names_in(node) | {one.attr for one in syntax.walk(node) if isinstance(one, ast.Attribute)}
    return bool(own & names)


def _is_given(call: ast.Call, names: set[str], models: Collection[str]) -> bool:
    is_model = ast.unparse(call.func) in models
    return is_model and any(_mentions(one, names) for one in (*call.args, *(one.value for one in call.keywords)))
