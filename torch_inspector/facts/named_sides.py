"""Operands that were stretched in lines of their own: `p = x[:, None].expand(n, m, d)`, `q = …`, and then `p - q`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_SPREADS = ("expand", "expand_as")


class NamedSides(NamedTuple):
    """The expression, and what its operands were before they were spread out."""

    node: ast.BinOp
    left: ast.expr
    right: ast.expr
    place: Place
    inside: bool
    """True if it stands in a function or class."""


def named_sides(run: Run, sign: type[ast.operator]) -> NamedSides | None:
    """The only expression of two names which their scope gives such tensors; None if the texts have several or none."""
    cells = {past.cell.source: past.cell for past in (*run.earlier, run)}
    found = []
    for source, cell in cells.items():
        tree = syntax.parse(source)
        nodes = syntax.walk(tree) if tree is not None else ()
        for node in (one for one in nodes if isinstance(one, ast.BinOp) and isinstance(one.op, sign)):
            scope = syntax.scope_at(tree, node.lineno) if tree is not None else node
            left, right = (_given(scope, side) for side in (node.left, node.right))
            inside = scope is not tree
            if left is not None and right is not None and (inside or source == run.cell.source):
                found.append(NamedSides(node, left, right, Place(cell.number, node.lineno), inside))
    return found[0] if len(found) == 1 else None


def _given(scope: ast.AST, side: ast.expr) -> ast.expr | None:
    """What the only statement that gives a name its value spreads out; None for anything else."""
    made = [one for one in syntax.own_statements(scope) if isinstance(one, (ast.Assign, ast.AugAssign, ast.For))]
    named = [one for one in made if isinstance(side, ast.Name) and side.id in _targets(one)]
    value = named[0].value if len(named) == 1 and isinstance(named[0], ast.Assign) else None
    spreads = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SPREADS
    return value.func.value if spreads else None  # type: ignore[union-attr]


def _targets(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
    return {name for one in targets for name in syntax.names_in(one)}
