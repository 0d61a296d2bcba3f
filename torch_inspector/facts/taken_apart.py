"""What the statements of a function or class give each variable and field; tuples and shapes are taken apart."""

from __future__ import annotations

import ast
from functools import lru_cache

from torch_inspector.facts import syntax


@lru_cache(maxsize=16)
def given_in(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """The values by the text of what they are given to; for trees that nobody changes afterwards."""
    found: dict[str, list[ast.expr]] = {}
    for node in (one for one in syntax.walk(scope) if isinstance(one, ast.Assign)):
        for target in node.targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            values = [node.value] if not parts else [_part(node.value, place) for place in range(len(parts))]
            for one, value in zip(parts or [target], values, strict=True):
                found.setdefault(ast.unparse(one), []).append(value)
    return found


def _part(value: ast.expr, place: int) -> ast.expr:
    """What one of several names is given: the same place of a tuple, or of something that is taken apart."""
    if isinstance(value, (ast.Tuple, ast.List)) and place < len(value.elts):
        return value.elts[place]
    return ast.Subscript(value, ast.Constant(place), ast.Load())
