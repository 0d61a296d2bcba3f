"""What a line of a scope last gave a name before another line, where nothing else may have done so in between."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.statements import given_apart, stores_in

_BLOCKS = ("body", "orelse", "finalbody")


class Given(NamedTuple):
    """The expression that a name was given, and the line where this was."""

    value: ast.expr
    line: int
    loop: ast.For | None = None
    """The loop of which it is a variable; the value is what that goes through."""


def last_given(scope: ast.AST, name: str, line: int) -> Given | None:
    """What a name of a scope surely was given last before a line; None where that is not known, or never was.

    `c` of `c = c[~empty]` is what it was before that line; a variable of a loop is one of those of its turns.
    """
    lines = stores_in(scope).get(name, ())
    if shares_line(scope, line):
        return None
    for block, around in reversed(_blocks_to(scope, line)):
        before = [one for one in block if (one.end_lineno or one.lineno) < line]
        giving = next((one for one in reversed(before) if any(_holds(one, store) for store in lines)), None)
        if giving is not None:
            value = given_apart(giving).get(name) if isinstance(giving, ast.Assign) else None
            return Given(value, giving.lineno) if value is not None else None
        if isinstance(around, ast.For) and block is around.body and name in _variables(around):
            return Given(around.iter, around.lineno, around)
        if isinstance(around, syntax.LOOPS) and any(_holds(around, store) for store in lines):
            return None
    return None


def shares_line(scope: ast.AST, line: int) -> bool:
    """True if several statements stand on a line: `c = c[1:]; d = c * 2`."""
    return any(sum(_holds(one, line) for one in block) > 1 for block, _ in _blocks_to(scope, line))


def _blocks_to(scope: ast.AST, line: int) -> list[tuple[list[ast.stmt], ast.AST]]:
    """The blocks around a line, from the outermost on, each with what it belongs to."""
    found: list[tuple[list[ast.stmt], ast.AST]] = []
    here: ast.AST | None = scope
    while here is not None:
        around = here
        blocks = [block for key in _BLOCKS if isinstance(block := getattr(around, key, None), list)]
        inside = ((one, block) for block in blocks for one in block if _holds(one, line))
        here, block = next(inside, (None, []))
        if here is not None:
            found.append((block, around))
    return found


def _variables(loop: ast.For) -> set[str]:
    return {one.id for one in syntax.walk(loop.target) if isinstance(one, ast.Name)}


def _holds(statement: ast.AST, line: int) -> bool:
    first = getattr(statement, "lineno", line + 1)
    return bool(first <= line <= (getattr(statement, "end_lineno", None) or first))
