"""Whether a part of a function surely ran when the function was called: a branch that is not known may not have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.shapes import UNKNOWN

# A `raise` would have ended the cell.
_LEAVES = (ast.Return, ast.Continue, ast.Break)


def is_reached(function: ast.AST, statement: ast.stmt, node: ast.AST, value: Callable[[ast.expr], Any]) -> bool:
    """True if the way from the beginning of a function to an expression has no branch of which the side is not known.

    Args:
        function: What was called; a lambda is one expression.
        statement: One of its statements.
        node: The expression in it.
        value: What an expression stands for.
    """
    body = getattr(function, "body", None)
    reached = _in_block(body, statement, value) if isinstance(body, list) else True
    choices = [one for one in syntax.walk(statement) if isinstance(one, (ast.IfExp, ast.BoolOp))] if reached else []
    return reached and all(_is_chosen(one, node, value) for one in choices)


def _is_chosen(choice: ast.IfExp | ast.BoolOp, node: ast.AST, value: Callable[[ast.expr], Any]) -> bool:
    """False for the side of `a if test else b`, and for what `a and b` may leave out, that may not have been taken."""
    if isinstance(choice, ast.BoolOp):
        return not any(one is node for part in choice.values[1:] for one in syntax.walk(part))
    sides = {True: choice.body, False: choice.orelse}
    inside = [side for side, part in sides.items() if any(one is node for one in syntax.walk(part))]
    return not inside or _truth(choice.test, value) is inside[0]


def _in_block(block: list[ast.stmt], statement: ast.stmt, value: Callable[[ast.expr], Any]) -> bool:
    for one in block:
        if one is statement:
            return True
        inside = any(part is statement for part in syntax.walk(one))
        if not inside and _may_leave(one, value):
            return False
        if inside:
            return _in_block(_taken(one, value), statement, value)
    return False


def _taken(one: ast.stmt, value: Callable[[ast.expr], Any]) -> list[ast.stmt]:
    """The block of a statement that is run; none if that is not known."""
    if isinstance(one, ast.If):
        truth = _truth(one.test, value)
        return [] if truth is None else one.body if truth else one.orelse
    return getattr(one, "body", []) if isinstance(one, (ast.With, ast.For, ast.While, ast.Try)) else []


def _may_leave(one: ast.stmt, value: Callable[[ast.expr], Any]) -> bool:
    """True if a statement may end the function, or the turn of the loop around it."""
    parts: list[ast.AST] = [one]
    if isinstance(one, ast.If) and (truth := _truth(one.test, value)) is not None:
        parts = [*one.body] if truth else [*one.orelse]
    while parts:
        node = parts.pop()
        if isinstance(node, _LEAVES):
            return True
        parts.extend(() if isinstance(node, syntax.INNER) else syntax.children(node))
    return False


def _truth(test: ast.expr, value: Callable[[ast.expr], Any]) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = _truth(test.operand, value)
        return None if truth is None else not truth
    found = value(test)
    if found is UNKNOWN or not is_one_of(found, (bool, int, str, list, tuple, dict, type(None))):
        return None
    return bool(found)
