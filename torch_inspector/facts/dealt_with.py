"""What a text does about NaN in a result: it takes another number in its place, or leaves it out."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax

_REPLACES = frozenset(
    ["where", "nan_to_num", "nan_to_num_", "masked_fill", "masked_fill_", "nanmean", "nansum", "nanmedian"]
)


def is_dealt_with(tree: ast.AST, name: str, line: int) -> bool:
    """True if a later line takes of a variable only what is a number: `torch.where(n > 0, out, 0)`, `z[~z.isnan()]`."""
    nodes = [one for one in syntax.walk(tree) if getattr(one, "lineno", 0) > line]
    return any(_replaces(one, name) or _picks(one, name) for one in nodes)


def _replaces(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REPLACES:
        return False
    return any(_is(one, name) for one in (node.func.value, *node.args))


def _picks(node: ast.AST, name: str) -> bool:
    """True for `z[~z.isnan()]`, `z[n > 0]`, `z[kept]`, and where something is written in such places of it."""
    masks = (ast.Compare, ast.UnaryOp, ast.Call, ast.Name)
    return isinstance(node, ast.Subscript) and _is(node.value, name) and isinstance(node.slice, masks)


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
