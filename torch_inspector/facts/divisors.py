"""What is divided by: a count, whose least useful value is 1, or a quantity, of which 0.3 is as good as 3."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_WHOLE = ("bool", "int", "uint")
# What gives true or false for each number, and what only writes it as another type.
_TESTS = frozenset(
    ["isfinite", "isnan", "isinf", "eq", "ne", "gt", "ge", "lt", "le", "logical_not", "logical_and", "bool"]
)
_TYPES = frozenset(["float", "double", "half", "int", "long", "to", "type", "type_as"])
_NOT_NEGATIVE = frozenset(
    ["norm", "std", "var", "abs", "square", "exp", "sqrt", "softmax", "sigmoid", "relu", "count_nonzero"]
)
_ADDED_UP = frozenset(["sum", "mean", "max", "amax"])


def is_count(run: Run, place: Place, node: ast.expr) -> bool:
    """True for a sum of what is true or false, or of whole numbers: of a mask."""
    if called(node) == "count_nonzero":
        return True
    return called(node) == "sum" and _is_whole(run, place, _inner(node))


def is_never_negative(node: ast.expr) -> bool:
    """True for a norm, a spread, a square and the like, and for sums of such."""
    inner: ast.expr | None = node
    while inner is not None and called(inner) in _ADDED_UP:
        inner = _inner(inner)
    return inner is not None and called(inner) in _NOT_NEGATIVE


def _inner(node: ast.AST) -> ast.expr | None:
    """`m` of `m.sum()` and `torch.sum(m)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    return next(iter(node.args), None) if of_torch else node.func.value


def _is_whole(run: Run, place: Place, node: ast.expr | None) -> bool:
    """True for masks and whole numbers, in whatever type they are written."""
    while node is not None and called(node) in _TYPES:
        node = _inner(node)
    if node is None:
        return False
    known = [one.dtype for one in run.after.tensors if one.path == ast.unparse(node)]
    whole = bool(known) and known[0].removeprefix("torch.").startswith(_WHOLE)
    return whole or _is_mask(node) or _is_given_masks(run, place, node)


def _is_mask(node: ast.expr | None) -> bool:
    """True for `y != 0`, `(y != 0).float()`, `~mask`, `a & b` of such."""
    if isinstance(node, ast.Compare) or called(node or ast.Pass()) in _TESTS:
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.Mult)) and _is_mask(node.left) and _is_mask(node.right)
    return node is not None and called(node) in _TYPES and _is_mask(_inner(node))


def _is_given_masks(run: Run, place: Place, node: ast.expr) -> bool:
    """True for a name to which the texts give masks only."""
    if not isinstance(node, ast.Name):
        return False
    trees = [syntax.parse(run.source_of(cell)) for cell in {place.cell, run.cell.number}]
    given = [
        one.value
        for tree in trees
        if tree is not None
        for one in syntax.walk(tree)
        if isinstance(one, ast.Assign) and any(ast.unparse(target) == node.id for target in one.targets)
    ]
    return bool(given) and all(map(_is_mask, given))
