"""The other way round a circle of 256 steps, as the text writes it: `256 - d`, `-d`, `b - a` beside `a - b`."""

from __future__ import annotations

import ast
from typing import Any

# What leaves numbers as they are, and masks as masks.
_CASTS = frozenset(
    ["float", "double", "half", "int", "long", "short", "bool", "byte", "to", "type", "clone", "contiguous", "copy",
     "astype", "unsqueeze", "view", "reshape", "flatten", "ravel", "squeeze", "expand", "expand_as"]
)  # fmt: skip
# Whole turns, and what is there to go the other way.
_TURNS = frozenset([0, 256])


def bare_of(value: Any) -> Any:
    """`c` of `c.float().to(device)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CASTS:
        value = value.func.value
    return value


def back_from(value: ast.expr) -> str:
    """`d` of `256 - d.int()` and of `-d`."""
    bare = bare_of(value)
    if isinstance(bare, ast.UnaryOp) and isinstance(bare.op, ast.USub):
        return ast.unparse(bare_of(bare.operand))
    turn = bare.left if isinstance(bare, ast.BinOp) and isinstance(bare.op, ast.Sub) else None
    return ast.unparse(bare_of(bare.right)) if isinstance(turn, ast.Constant) and turn.value in _TURNS else ""


def opposite(one: ast.expr, other: ast.expr) -> bool:
    """True for `a - b` and `b - a`."""
    first, second = bare_of(one), bare_of(other)
    subs = all(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Sub) for side in (first, second))
    return subs and ast.unparse(first) == f"{ast.unparse(second.right)} - {ast.unparse(second.left)}"
