"""Comparisons in whichever way they are written: `a > b`, `torch.gt(a, b)`, `a.gt(b)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from torch_inspector.observe.source import dotted

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Gt: "gt", ast.Lt: "lt", ast.GtE: "ge", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_LONG = {"greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": operator.gt, "lt": operator.lt, "ge": operator.ge, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


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
