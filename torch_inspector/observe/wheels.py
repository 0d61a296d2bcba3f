"""Bytes that are places on a wheel of 256 steps, hues and angles: they go round on purpose."""

from __future__ import annotations

import ast
import re

from torch_inspector.facts import syntax
from torch_inspector.observe.handed_on import loads
from torch_inspector.observe.source import dotted

# 256 steps, or what they are made of: degrees and radians.
_STEPS = frozenset([256, 360, 360.0, 256.0, 1.40625])
_ROUND = frozenset(["pi", "tau", "sin", "cos", "deg2rad", "polar", "radians"])
_NAMED = re.compile(r"(?<![a-z])(hues?|angles?|azimuths?)(?![a-z])", re.IGNORECASE)
_ROUNDS = 3


def is_wheel(tree: ast.AST, read: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """True if what reads a result, or the next statements that read what this gives, turn steps into an angle."""
    statement = syntax.statement_of(read, parents)
    known: list[ast.stmt] = [] if statement is None else [statement]
    for _ in range(_ROUNDS):
        if any(_turns(one) for one in known):
            return True
        given = [(name, one.lineno) for one in known for name in _targets(one)]
        uses = (use for name, line in given for use in loads(tree, name, line))
        known = [one for use in uses if (one := syntax.statement_of(use, parents)) is not None]
    return False


def _targets(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [name for one in targets if one is not None and (name := dotted(one))]


def _turns(statement: ast.stmt) -> bool:
    """True for a product or a quotient with the steps of a turn, and for a sine."""
    if hasattr(statement, "body"):
        return False
    nodes = list(syntax.walk(statement))
    named = (getattr(one, "attr", "") or getattr(one, "id", "") for one in nodes)
    scaled = (one for one in nodes if isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Mult, ast.Div)))
    return any(one in _ROUND or _NAMED.search(one) for one in named) or any(_is_step(one) for one in scaled)


def _is_step(scaled: ast.BinOp) -> bool:
    values = (one.value for one in (scaled.left, scaled.right) if isinstance(one, ast.Constant))
    return any(isinstance(one, (int, float)) and one in _STEPS for one in values)
