"""Comparisons in whichever way they are written, and what joins them: `a > b`, `torch.gt(a, b)`, `~ok`, `p & q`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from torch_inspector.observe.source import dotted

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Gt: "gt", ast.Lt: "lt", ast.GtE: "ge", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_LONG = {"greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": operator.gt, "lt": operator.lt, "ge": operator.ge, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
# Functions and methods that compare.
SIGNS = frozenset([*_OPERATORS, *_LONG])
_NOTS, _ALLS = frozenset(["logical_not", "bitwise_not"]), frozenset(["logical_and", "bitwise_and"])
_ANYS, _PLACES = frozenset(["logical_or", "bitwise_or"]), frozenset(["nonzero", "argwhere", "where"])


class How(Enum):
    """How masks are made one."""

    NOT = "not"
    ALL = "all"
    ANY = "any"
    SAME = "same"


class Joined(NamedTuple):
    """Masks of which another is made."""

    how: How
    masks: list[ast.expr]


def joined_masks(value: ast.AST) -> Joined | None:
    """The masks in `~ok`, `p & q`, `torch.logical_or(p, q)` and `ok.nonzero()`; None for anything else."""
    if isinstance(value, ast.UnaryOp):
        return Joined(How.NOT, [value.operand]) if isinstance(value.op, (ast.Invert, ast.Not)) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.BitAnd, ast.BitOr)):
        return Joined(How.ALL if isinstance(value.op, ast.BitAnd) else How.ANY, [value.left, value.right])
    return _joined_by_call(value) if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None


def _joined_by_call(call: ast.Call) -> Joined | None:
    func, name = call.func, getattr(call.func, "attr", "")
    owner = func.value if isinstance(func, ast.Attribute) else func
    sides = [*([] if dotted(owner) in ("torch", "np", "numpy") else [owner]), *call.args]
    if len(sides) == 1 and (name in _NOTS or name in _PLACES):
        return Joined(How.NOT if name in _NOTS else How.SAME, sides)
    return Joined(How.ALL if name in _ALLS else How.ANY, sides) if name in _ALLS | _ANYS else None


def compared(test: ast.AST) -> tuple[str, ast.expr, ast.expr] | None:
    """The sign and both sides of a comparison of two; None for anything else."""
    if isinstance(test, ast.Compare):
        sign = _SIGNS.get(type(test.ops[0]), "") if len(test.ops) == 1 else ""
        return (sign, test.left, test.comparators[0]) if sign else None
    func = test.func if isinstance(test, ast.Call) else None
    if not isinstance(test, ast.Call) or not isinstance(func, ast.Attribute):
        return None
    sign = _LONG.get(func.attr, func.attr)
    sides = [*([] if dotted(func.value) in ("torch", "np", "numpy") else [func.value]), *test.args]
    return (sign, *sides) if sign in _OPERATORS and len(sides) == 2 else None  # type: ignore[return-value]  # noqa: PLR2004


def holds(sign: str, one: Any, two: Any) -> Any:
    """Where a comparison of tensors or numbers holds; None where their shapes do not fit any more."""
    try:
        return _OPERATORS[sign](one, two)
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return None
