"""Gradients that a line of the cell sets to 0 between a backward call and the step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import StepFact
    from torch_inspector.facts.run import Run


_AROUND = (ast.For, ast.If, ast.With)


class Zeroed(NamedTuple):
    """The first such statement, and its line."""

    text: str
    line: int
    whole: str
    """All such statements with the loops around them; empty if these do something else, too."""


def zeroed_by_hand(run: Run, step: StepFact) -> Zeroed | None:
    """`p.grad.zero_()` in the lines between; None if there is none, or if they are not of one function."""
    before, after = step.backward_at, step.place
    if before is None or before.scope != after.scope:
        return None
    tree = syntax.parse(run.source_of(after.cell))
    if tree is None or before.line is None or after.line is None:
        return None
    nodes = list(syntax.own_statements(syntax.scope_at(tree, after.line)))
    found = [node for node in nodes if before.line < node.lineno < after.line and _zeroes(node)]
    found.sort(key=lambda node: node.lineno)
    return Zeroed(ast.unparse(found[0]), found[0].lineno, _whole(nodes, found, before.line)) if found else None


def _whole(nodes: list[ast.stmt], found: list[ast.stmt], since: int) -> str:
    wholes: dict[int, ast.stmt] = {}
    for node in found:
        around = [one for one in nodes if isinstance(one, _AROUND) and since < one.lineno and _holds(one, node)]
        whole = min(around, key=lambda one: one.lineno, default=node)
        wholes[id(whole)] = whole
    inner = [one for whole in wholes.values() for one in syntax.walk(whole) if isinstance(one, ast.stmt)]
    only = all(isinstance(one, _AROUND) or one in found for one in inner)
    return "\n".join(map(ast.unparse, wholes.values())) if only else ""


def _holds(outer: ast.stmt, inner: ast.stmt) -> bool:
    return any(one is inner for one in syntax.walk(outer))


def _zeroes(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    if not isinstance(function, ast.Attribute) or function.attr != "zero_":
        return False
    owner = syntax.attached(function.value) or function.value
    return isinstance(owner, ast.Attribute) and owner.attr == "grad"
