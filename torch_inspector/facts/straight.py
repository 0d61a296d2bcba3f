"""Values that take the slope of another one past themselves, in the text: `x + (z - x).detach()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax


class Straight(NamedTuple):
    """The value that comes out, and the one that gets its gradient."""

    value: str
    slope: str
    function: str
    """The function around it; empty at the top level."""


def straight_at(text: str, source: str, line: int | None) -> Straight | None:
    """The one of which a line cuts off this text; None where the line does something else."""
    tree = syntax.parse(source)
    if tree is None or line is None:
        return None
    sums = (n for n in syntax.walk(tree) if isinstance(n, ast.BinOp) and n.lineno <= line <= (n.end_lineno or n.lineno))
    pairs = (pair for one in sums for pair in _pairs(one, text))
    value, slope = next(pairs, ("", ""))
    return Straight(value, slope, syntax.name_around(tree, line)) if value else None


def straightened(source: str, line: int | None, function: str) -> str:
    """The statement of a line whose `round` or the like lets the slope past; else a pattern for it."""
    tree = syntax.parse(source)
    statements = (n for n in syntax.walk(tree) if isinstance(n, (ast.Assign, ast.Return))) if tree is not None else ()
    for one in statements:
        call = next((n for n in syntax.walk(one) if _is_call_of(n, function)), None)
        if one.lineno == line and isinstance(call, ast.Call) and ast.unparse(one).count(ast.unparse(call)) == 1:
            return _past(one, call, function, source)
    return f"soft + (soft.{function}() - soft).detach()  # soft: what {function} is given; its slope is let past"


def _past(statement: ast.stmt, call: ast.Call, function: str, source: str) -> str:
    given, text = _operand(call), ast.unparse(statement)
    operand, first = ast.unparse(given), ""
    if not isinstance(given, (ast.Name, ast.Attribute)):
        name = next(one for one in ("soft", "before_" + function, "_soft") if one not in source or one == "_soft")
        operand, first = name, f"{name} = {operand}\n"
    new = f"{operand} + ({operand}.{function}() - {operand}).detach()"
    whole = isinstance(statement, (ast.Assign, ast.Return)) and statement.value is call
    return first + text.replace(ast.unparse(call), new if whole else f"({new})") + f"  # the slope of {operand}"


def _is_call_of(node: ast.AST, function: str) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    named = isinstance(called, ast.Attribute) and called.attr in (function, f"{function}_")
    return named and isinstance(node, ast.Call) and (_is_torch(node) or not node.args) and not node.keywords


def _is_torch(node: ast.Call) -> bool:
    return len(node.args) == 1 and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "torch"


def _operand(node: ast.Call) -> ast.expr:
    """`x` of `torch.round(x)` and `x.round()`."""
    return node.args[0] if _is_torch(node) else node.func.value  # type: ignore[attr-defined]


def _pairs(node: ast.BinOp, text: str) -> Iterator[tuple[str, str]]:
    """`z` and `x` of `x + (z - x).detach()` and of `x + z.detach() - x.detach()`."""
    if isinstance(node.op, ast.Add):
        for cut, other in ((node.left, node.right), (node.right, node.left)):
            inner = syntax.attached(cut)
            minus = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and ast.unparse(cut) == text
            if minus and isinstance(inner, ast.BinOp) and ast.unparse(inner.right) == ast.unparse(other):
                yield ast.unparse(inner.left), ast.unparse(other)
    elif isinstance(node.op, ast.Sub) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
        less, parts = syntax.attached(node.right), (node.left.left, node.left.right)
        for cut, other in (parts, parts[::-1]):
            inner = syntax.attached(cut)
            same = inner is not None and less is not None and ast.unparse(less) == ast.unparse(other)
            if same and inner is not None and ast.unparse(cut) == text:
                yield ast.unparse(inner), ast.unparse(other)
