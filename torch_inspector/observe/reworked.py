"""Small tensors that a function made and dropped, worked out anew from what is still there: nothing of the text is run.

Only what always gives the same is: comparisons, masks, other types, arithmetic of plain tensors that few elements have.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import torch

from torch_inspector.observe import as_torch
from torch_inspector.observe.fitting import SMALL, fits_all, kind_of, share_outside
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import UNKNOWN

Read = Callable[[ast.expr, bool], Any]
"""What a part of the expression stands for; the second says that any type of numbers will do."""

# As many elements as a few operations go through in a tenth of a millisecond.
_MOST = 1 << 16
_SIGNS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_MAY_WRAP: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_COMPARES: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CASTS = {
    "byte": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
    "float": torch.float32,
    "double": torch.float64,
}
_ROUNDS = frozenset(["round", "floor", "ceil", "trunc", "abs"])


def reworked(names: Names, expression: ast.expr, read: Read, *, wide: bool) -> Any:
    """The value of an expression, where the values of its parts are known; `UNKNOWN` otherwise.

    Args:
        names: Of its scope.
        expression: Of the user's text.
        read: Gives the values of its parts.
        wide: True if a value that is no tensor of small numbers is wanted, too.
    """
    try:
        value = _value(names, expression, read, wide=wide)
    except Exception:  # noqa: BLE001  (parts that do not fit each other any more)
        return UNKNOWN
    return value if _is_plain(value) and (wide or kind_of(value) is not None) else UNKNOWN


def _value(names: Names, expression: ast.expr, read: Read, *, wide: bool) -> Any:
    if isinstance(expression, ast.BinOp):
        return _operation(expression, read, wide=wide)
    if isinstance(expression, ast.Subscript):
        return _chosen(expression, read, wide=wide)
    if isinstance(expression, ast.Call):
        return _of_type(names, expression, read, wide=wide)
    return _truths(expression, read) if wide else UNKNOWN


def _operation(expression: ast.BinOp, read: Read, *, wide: bool) -> Any:
    """Arithmetic; of small numbers only what fits, as the other is judged for itself."""
    sign = _SIGNS.get(type(expression.op))
    if sign is None:
        return UNKNOWN
    sides = [read(expression.left, wide)]
    sides.append(read(expression.right, wide or kind_of(sides[0]) is not None))
    if not all(_is_plain(one) or is_one_of(one, (int, float)) for one in sides) or not any(map(_is_plain, sides)):
        return UNKNOWN
    result, name = sign(*sides), _MAY_WRAP.get(type(expression.op), "")
    kind = kind_of(result)
    return UNKNOWN if kind is not None and name and share_outside(name, sides, kind) else result


def _chosen(expression: ast.Subscript, read: Read, *, wide: bool) -> Any:
    """`c[mask]`."""
    owner = read(expression.value, wide)
    mask = read(expression.slice, True) if _is_plain(owner) else UNKNOWN
    return owner[mask] if _is_plain(mask) and as_torch.dtype(mask) is torch.bool else UNKNOWN


def _of_type(names: Names, call: ast.Call, read: Read, *, wide: bool) -> Any:
    """`c.to(torch.int8)`, `c.byte()`, `c.round()`."""
    if not isinstance(call.func, ast.Attribute):
        return UNKNOWN
    method, kind = call.func.attr, _kind_asked(names, call)
    if method in _ROUNDS and not call.args and not call.keywords and wide:
        value = read(call.func.value, True)
        return getattr(value, method)() if _is_plain(value) else UNKNOWN
    if kind is None or not (wide or kind in SMALL):
        return UNKNOWN
    value = read(call.func.value, True)
    # What does not fit there comes out in ways of its own.
    return value.to(kind) if _is_plain(value) and fits_all(value, kind) else UNKNOWN


def _kind_asked(names: Names, call: ast.Call) -> torch.dtype | None:
    """The type of numbers that a call converts to; None if it does anything else."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
    if len(given) != len(call.args) + len(call.keywords):
        return None
    if method in ("to", "type") and len(given) == 1:
        kind = names.value(given[0])
        return kind if type(kind) is torch.dtype else None
    return _CASTS.get(method) if not given else None


def _truths(expression: ast.expr, read: Read) -> Any:
    """A comparison, or the opposite of one."""
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Invert):
        value = read(expression.operand, True)
        return ~value if _is_plain(value) else UNKNOWN
    compare = _COMPARES.get(type(expression.ops[0])) if isinstance(expression, ast.Compare) else None
    if not isinstance(expression, ast.Compare) or compare is None or len(expression.ops) != 1:
        return UNKNOWN
    one, two = read(expression.left, True), read(expression.comparators[0], True)
    known = _is_plain(one) and (_is_plain(two) or is_one_of(two, (int, float)))
    return compare(one, two) if known else UNKNOWN


def _is_plain(value: Any) -> bool:
    """True for a small tensor whose numbers can be read, and of which no gradient is worked out."""
    plain = type(value) is torch.Tensor and is_in_memory(value) and not as_torch.requires_grad(value)
    return plain and 0 < as_torch.numel(value) <= _MOST
