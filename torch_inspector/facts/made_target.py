"""The target of a loss that the failing call computes itself: `F.cross_entropy(scores, labels.long())`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact


class MadeTarget(NamedTuple):
    """What the loss was given, and the tensor that it is made of."""

    operand: OperandFact
    text: str
    """`labels.long()`, `(labels - 1)`."""


def made_target(error: ErrorFact) -> MadeTarget | None:
    """The second argument of the call that failed, where methods and numbers make it of one tensor."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call):
        return None
    named = [one.value for one in call.keywords if one.arg == "target"]
    given = next(iter((*named, *call.args[1:2])), None)
    name = _root(given) if given is not None else ""
    operand = next((one for one in error.operands if one.path == name and one.kind == "tensor"), None)
    if given is None or not name or operand is None:
        return None
    text = ast.unparse(given)
    return MadeTarget(operand, f"({text})" if isinstance(given, (ast.BinOp, ast.UnaryOp)) else text)


def _root(node: ast.expr) -> str:
    """`labels` of `labels.long() - 1` and `batch["y"]` of `batch["y"].long()`; empty if there are several."""
    if isinstance(node, ast.BinOp):
        sides = [one for one in (node.left, node.right) if not isinstance(one, ast.Constant)]
        return _root(sides[0]) if len(sides) == 1 else ""
    if isinstance(node, ast.Call):
        return _root(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else ""
