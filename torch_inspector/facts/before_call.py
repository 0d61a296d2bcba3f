"""A value made anew for a call that failed: in a statement before it, or in the call, where no statement can stand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact
    from torch_inspector.facts.run import Run


def made_before(run: Run, error: ErrorFact, name: str, made: str) -> str:
    """`g = g.to(device)  # before loss_of(g)`; for what a lambda is given, `loss_of(g.to(device))  # in place of …`.

    Args:
        run: The run whose texts are read.
        error: Its exception, raised in a function that was called.
        name: What the caller calls the value.
        made: The new value, an expression with that name.
    """
    new = syntax.expression(made)
    if new is None or not _is_given_inside(run, error, name):
        return f"{name} = {made}  # before {error.caller}"
    # A tree of its own: it is changed.
    call = _Replaced(name, new).visit(ast.parse(error.caller, mode="eval"))
    return f"{ast.unparse(call)}  # in place of {error.caller}"


def _is_given_inside(run: Run, error: ErrorFact, name: str) -> bool:
    """True if a lambda or a comprehension around the call gives the name its value."""
    place = error.way[0] if error.way else None
    tree = syntax.parse(run.source_of(place.cell)) if place is not None else None
    nodes = syntax.walk(tree) if tree is not None else ()
    around = [one for one in nodes if isinstance(one, (ast.Lambda, *syntax.COMPREHENSIONS)) and name in _given_by(one)]
    inside = [part for one in around for part in syntax.walk(one) if isinstance(part, ast.Call)]
    return any(ast.unparse(part) == error.caller for part in inside)


def _given_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Lambda):
        return syntax.parameters_of(node)
    return set[str]().union(*(syntax.names_in(one.target) for one in getattr(node, "generators", ())))


class _Replaced(ast.NodeTransformer):
    def __init__(self, name: str, new: ast.expr) -> None:
        self._name, self._new = name, new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._new if node.id == self._name and isinstance(node.ctx, ast.Load) else node
