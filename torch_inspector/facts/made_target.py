"""The target of a loss that the failing call computes itself: `F.cross_entropy(scores, labels.long())`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_inspector.facts.errors import ErrorFact, OperandFact

CAST, ROWS, MOVED, COMPUTED = "cast", "rows", "moved", "computed"
"""What may have been done to the tensor: another type, some of its rows, another shape or part, other numbers."""

_CASTS = frozenset(
    ["long", "int", "short", "byte", "bool", "float", "double", "half", "bfloat16", "to", "type", "type_as"]
)
_SAME = frozenset(["detach", "clone", "contiguous", "data", "cpu", "cuda"])
_MOVES = frozenset(
    ["view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "t", "T", "mT", "permute", "transpose", "expand"]
)


class MadeTarget(NamedTuple):
    """What the loss was given, and the tensor that it is made of."""

    operand: OperandFact | None
    """None if it is made of several, or of what the line does not name."""
    text: str
    """`labels.long()`, `(labels - 1)`."""
    steps: frozenset[str] = frozenset()


def made_target(error: ErrorFact) -> MadeTarget | None:
    """The second argument of the call that failed, if it is more than the name of a tensor."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    named = [one.value for one in call.keywords if one.arg == "target"]
    given = next(iter((*named, *call.args[1:2])), None)
    tensors = {one.path: one for one in error.operands if one.kind == "tensor"}
    if given is None or ast.unparse(given) in tensors or isinstance(given, ast.Name):
        return None
    root, steps = _root(given, frozenset(tensors))
    text = ast.unparse(given)
    bare = isinstance(given, (ast.Call, ast.Attribute, ast.Subscript))
    return MadeTarget(tensors.get(root), text if bare else f"({text})", frozenset(steps))


def _root(node: ast.expr, paths: frozenset[str]) -> tuple[str, list[str]]:
    """`labels` of `labels.long() - 1`, and what is done to it; no name if there are several tensors, or none."""
    steps: list[str] = []
    while ast.unparse(node) not in paths:
        steps.append(_step(node))
        below = [one for one in _made_of(node) if any(ast.unparse(part) in paths for part in syntax.walk(one))]
        if len(below) != 1:
            return "", [COMPUTED]
        node = below[0]
    return ast.unparse(node), [one for one in steps if one]


def _step(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return ROWS if isinstance(node.slice, ast.Slice) else MOVED
    method = node.func if isinstance(node, ast.Call) else node
    name = method.attr if isinstance(method, ast.Attribute) else ""
    return CAST if name in _CASTS else MOVED if name in _MOVES else "" if name in _SAME else COMPUTED


def _made_of(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that one is made of: a method's owner and arguments, both sides of an operation."""
    if isinstance(node, ast.Subscript):
        yield node.value
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Attribute) and isinstance(node, ast.Call) and part is node.func:
            yield part.value
        elif isinstance(part, ast.expr):
            yield part
        elif isinstance(part, ast.keyword):
            yield part.value
