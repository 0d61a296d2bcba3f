"""What a function of the user gives a call that it makes, where that comes from outside of it."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.lines import Spot, calls_at
from torch_inspector.observe.statements import stored_last


def handed_in(tree: ast.AST, spot: Spot, known: frozenset[str] | None) -> frozenset[str] | None:
    """Last names of what the call is given, and of those known; None if the function makes some of it itself.

    Args:
        tree: The cell.
        spot: Of the call.
        known: The same of the calls that it leads to; None if one of these makes some itself.
    """
    own = syntax.own_expressions(syntax.scope_at(tree, spot.line))
    given = [part for call in calls_at(tree, spot) for part in (*call.args, *(one.value for one in call.keywords))]
    parts = [one for part in given for one in syntax.walk(part)]
    read = {name for one in parts if (name := syntax.name_of(one))}
    made = any(isinstance(one, ast.Call) for one in parts) or any(stored_last(one) & read for one in own)
    return None if made or known is None else known | read
