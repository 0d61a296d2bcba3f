"""A generator of parameters that something went through before an optimizer was given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


class UsedUp(NamedTuple):
    """The variable, what it was given, and the lines that made it and that went through it first."""

    name: str
    made: str
    at: Place
    by: Place


def used_up(run: Run, module: str, optimizer: str) -> UsedUp | None:
    """The variable `p = module.parameters()` that a line reads before the optimizer is made with it."""
    nodes = list(_nodes(run))
    for node, cell, offset in reversed(nodes):
        made = ast.unparse(node.value) if isinstance(node, ast.Assign) else ""
        if made == f"{module}.parameters()" and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, at = node.targets[0].id, (cell, node.lineno)
            reads = [(c, n.lineno) for n, c, _ in nodes if _reads(n, name) and (c, n.lineno) > at]
            last = [(c, n.lineno) for n, c, _ in nodes if _makes(n, optimizer, name) and (c, n.lineno) > at]
            if not reads or not last or reads[0] >= last[0]:
                return None
            return UsedUp(name, made, Place(cell, node.lineno + offset), Place(reads[0][0], reads[0][1] + offset))
    return None


def _nodes(run: Run) -> Iterator[tuple[ast.stmt, int, int]]:
    """The statements at the top of the cells that ran, with the cell and what its lines are shifted by."""
    for one in (*run.earlier, run):
        tree = syntax.parse(one.cell.code)
        for node in tree.body if tree is not None else ():
            yield node, one.cell.number or 0, one.cell.line_offset


def _reads(node: ast.stmt, name: str) -> bool:
    """True if a statement goes through what the name stands for: a loop, `sum(… for p in name)`, `list(name)`."""
    loops = (one.iter for one in syntax.walk(node) if isinstance(one, (ast.For, ast.comprehension)))
    calls = (one for one in syntax.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name))
    given = (one.args[0] for one in calls if one.args and ast.unparse(one.func) in ("list", "tuple", "sum", "set"))
    return any(isinstance(one, ast.Name) and one.id == name for one in (*loops, *given))


def _makes(node: ast.stmt, optimizer: str, name: str) -> bool:
    """True if a statement gives the optimizer's variable a value that is made with the name."""
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != optimizer:
        return False
    return any(isinstance(one, ast.Name) and one.id == name for one in syntax.walk(node.value))
