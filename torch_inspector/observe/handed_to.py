"""Whether a variable was given to somebody before a line: who has it may write into it by another name."""

from __future__ import annotations

import ast
from functools import lru_cache

from torch_inspector.facts import syntax

# What works out something else of it.
_WORKS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue)
_LOOKS = frozenset(
    ["shape", "dtype", "device", "ndim", "size", "dim", "numel", "float", "double", "int", "long", "max", "min", "mean",
     "sum", "any", "all", "std", "is_floating_point", "clone", "print", "len", "assert_"]
)  # fmt: skip


def is_handed_on(scope: ast.AST, name: str, line: int) -> bool:
    """True if a line before gives a variable to anything but arithmetic and what only looks at it."""
    return any(one < line for one in _given_away(scope).get(name, ()))


@lru_cache(maxsize=64)
def _given_away(scope: ast.AST) -> dict[str, list[int]]:
    """Lines that do so, by name; those of functions inside have no line of their own."""
    found: dict[str, list[int]] = {}
    own = {id(one) for one in syntax.own_expressions(scope)}
    parents = syntax.parents(scope)
    for one in syntax.walk(scope):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and not _is_looked_at(one, parents):
            found.setdefault(one.id, []).append(one.lineno if id(one) in own else 0)
    return found


def _is_looked_at(name: ast.Name, parents: dict[int, ast.AST]) -> bool:
    parent = parents.get(id(name))
    if isinstance(parent, ast.Attribute):
        return parent.attr in _LOOKS
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in _LOOKS
    # The mask of `x[x > 0]` is a comparison; `x[0]` shares its memory.
    return isinstance(parent, _WORKS)
