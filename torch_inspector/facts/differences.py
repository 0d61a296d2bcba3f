"""The assignment `gap = wanted - values` on the way to a loss, as the only place where its two sides met."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.place import Shape
    from torch_inspector.facts.run import Run

# A name that is read as often is wanted by more than the loss.
_SEVERAL = 2


def kept_difference(run: Run, place: Place, other: str, shape: Shape) -> tuple[Place, ast.expr] | None:
    """Where a difference got a name that is read again, on the way to the loss of a line, and what met the other side.

    Args:
        run: The cell.
        place: The line of the loss.
        other: What the code calls the one side.
        shape: Of what it met.
    """
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None or place.line is None or not other.isidentifier():
        return None
    scope = syntax.scope_at(tree, place.line)
    given = [node for node in syntax.own_statements(scope) if isinstance(node, ast.Assign)]
    found = [(node, side) for node in given for side in _met(node.value, other)]
    if len(found) != 1:
        return None
    (node, side), name = found[0], _name(found[0][0])
    own = _made_of(given, {name})
    elsewhere = [one for one in syntax.own_expressions(scope) if one is not node.value and _meets(one, other, own)]
    wanted = bool(name) and reads_of(scope, name) >= _SEVERAL and not elsewhere
    fits = wanted and _may_have(run, side, shape) and name in _behind(scope, given, place.line)
    return (Place(place.cell, node.lineno), side) if fits else None


def reads_of(scope: ast.AST, name: str) -> int:
    """How often a scope reads a variable."""
    names = (node for node in syntax.own_expressions(scope) if isinstance(node, ast.Name))
    return sum(node.id == name and isinstance(node.ctx, ast.Load) for node in names)


def _met(node: ast.expr, other: str) -> list[ast.expr]:
    """The other operand of a difference, if one of them is what is named and the other has nothing of it."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else ()
    texts = [ast.unparse(one) for one in sides]
    met = [sides[1 - texts.index(other)]] if texts.count(other) == 1 else []
    return [one for one in met if other not in _names([one])]


def _meets(node: ast.AST, other: str, own: set[str]) -> bool:
    """True if the named side meets something that is not made of the difference: `net(x) - y`, `crit(net(x), y)`."""
    if isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        operands = [*receiver, *node.args, *(one.value for one in node.keywords)]
    else:
        return False
    sides = [one for one in operands if ast.unparse(one) != other]
    return len(sides) < len(operands) and any(_names([one]) and not _names([one]) & own for one in sides)


def _may_have(run: Run, side: ast.expr, shape: Shape) -> bool:
    """False for a variable of another shape."""
    known = [one.shape for one in run.after.tensors if one.path == ast.unparse(side)]
    return not known or shape in known


def _behind(scope: ast.AST, given: list[ast.Assign], line: int) -> set[str]:
    """The names that the statement of a line reads, and those that these are made of."""
    at_line = [one for one in syntax.own_statements(scope) if one.lineno <= line <= (one.end_lineno or one.lineno)]
    found = _names(one for one in at_line if not hasattr(one, "body"))
    while more := _names(one.value for one in given if _name(one) in found) - found:
        found |= more
    return found


def _made_of(given: list[ast.Assign], names: set[str]) -> set[str]:
    """The names, and those that are made of them."""
    while more := {_name(one) for one in given if _names([one.value]) & names} - names - {""}:
        names = names | more
    return names


def _name(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if len(node.targets) == 1 and isinstance(target, ast.Name) else ""


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in syntax.walk(node) if isinstance(one, ast.Name)}
