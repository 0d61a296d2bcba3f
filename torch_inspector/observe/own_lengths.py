"""Results that have another length for each row of a tensor: no operation on all rows gives them at once."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax

# What gives as many numbers as a row has of some kind.
_OWN = frozenset(
    ["nonzero", "argwhere", "unique", "unique_consecutive", "masked_select", "bincount", "combinations",
     "cartesian_prod", "repeat_interleave", "tensor_split", "to_sparse", "to_sparse_csr", "flatnonzero"]
)  # fmt: skip
# What is made in a size, which may come from the numbers of a row.
_SIZED = frozenset(["zeros", "ones", "empty", "full", "arange", "linspace", "rand", "randn", "eye", "new_zeros"])
_ASKS_SIZE = frozenset(["len", "size", "dim", "numel", "int", "ndimension"])
# What makes one number of a part, whatever its length.
_TOTALS = frozenset(["sum", "mean", "max", "min", "amax", "amin", "prod", "std", "var", "norm", "any", "all", "numel"])


def have_own_lengths(nodes: list[ast.AST]) -> bool:
    """True if one of the expressions gives each row a result of its own length."""
    masks = _masks(nodes)
    totals = {id(one.value) for one in nodes if isinstance(one, ast.Attribute) and one.attr in _TOTALS}
    return any(_is_own(one, masks, totals) for one in nodes)


def _is_own(node: ast.AST, masks: set[str], totals: set[int]) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and id(node) not in totals and _is_mask(node.slice, masks)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "where":
        return len(node.args) + len(node.keywords) == 1
    if name == "one_hot":
        return len(node.args) + len(node.keywords) == 1
    return name in _OWN or (name in _SIZED and any(_is_read(one) for one in node.args))


def _masks(nodes: list[ast.AST]) -> set[str]:
    """Names that are given a comparison."""
    given = (one for one in nodes if isinstance(one, ast.Assign) and _is_mask(one.value, set()))
    return {name.id for one in given for name in one.targets if isinstance(name, ast.Name)}


def _is_mask(index: ast.expr, masks: set[str]) -> bool:
    """True for `row > 0`, `~row.isnan()`, `(a > 0) & (b > 0)`, and for a name that was given one."""
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.Invert)
    if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.BitAnd, ast.BitOr)):
        return _is_mask(index.left, masks) or _is_mask(index.right, masks)
    return isinstance(index, ast.Compare) or (isinstance(index, ast.Name) and index.id in masks)


def _is_read(size: ast.expr) -> bool:
    """True for `row.argmax() + 1` and `row[0]`; not for `len(row)`, `row.shape[0]` and `n`."""
    for one in syntax.walk(size):
        if isinstance(one, ast.Subscript) and getattr(one.value, "attr", "") != "shape":
            return True
        if isinstance(one, ast.Call):
            name = one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", "")
            if name not in _ASKS_SIZE:
                return True
    return False
