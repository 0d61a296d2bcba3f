"""Whether a test holds, as far as plain values of an object and of the notebook tell; nothing is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from torch_inspector.observe import kinds

_PLAIN = (int, float, str, bool, type(None))
_LISTS = (list, tuple, dict)
_UNKNOWN = object()
_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def truth(test: ast.expr, function: FunctionType, owner: Any, first: str) -> bool | None:
    """True, false, or None where that is not known.

    Args:
        test: The expression.
        function: Whose text it stands in.
        owner: The object that the function belongs to, if any.
        first: What the function calls it.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(test.operand, function, owner, first)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        every = [truth(one, function, owner, first) for one in test.values]
        ends = isinstance(test.op, ast.Or)
        return ends if ends in every else None if None in every else not ends
    if isinstance(test, ast.Compare):
        return _compared(test, function, owner, first)
    return _holds(_value(test, function, owner, first))


def _compared(test: ast.Compare, function: FunctionType, owner: Any, first: str) -> bool | None:
    """The same of `self.mode == "train"`, `self.noise is not None` and `self.mode in ("train", "both")`."""
    left, right = (_value(one, function, owner, first) for one in (test.left, test.comparators[0]))
    op = test.ops[0]
    if len(test.ops) != 1 or left is _UNKNOWN or right is _UNKNOWN:
        return None
    if isinstance(op, (ast.Is, ast.IsNot)):
        return (left is right) == isinstance(op, ast.Is)
    if isinstance(op, (ast.In, ast.NotIn)) and kinds.is_one_of(right, (list, tuple)) and kinds.is_one_of(left, _PLAIN):
        plain = all(kinds.is_one_of(one, _PLAIN) for one in right)
        return (left in right) == isinstance(op, ast.In) if plain else None
    return _told_apart(op, left, right)


def _told_apart(op: ast.cmpop, left: Any, right: Any) -> bool | None:
    """The same of two plain values."""
    if type(op) not in _COMPARES or not (kinds.is_one_of(left, _PLAIN) and kinds.is_one_of(right, _PLAIN)):
        return None
    alike = {type(left), type(right)}
    unlike = (str in alike and len(alike) > 1) or type(None) in alike
    if unlike and not isinstance(op, (ast.Eq, ast.NotEq)):
        return None
    return bool(_COMPARES[type(op)](left, right))


def _holds(value: Any) -> bool | None:
    """What `bool` says of it, where no code of the user's would be asked."""
    if kinds.is_one_of(value, (*_PLAIN, *_LISTS)):
        return bool(value)
    if kinds.is_one_of(value, (FunctionType, BuiltinFunctionType)):
        return True
    fields = (kinds.class_fields(kind) for kind in kinds.mro_of(type(value)))
    asks = value is _UNKNOWN or any("__bool__" in one or "__len__" in one for one in fields)
    return None if asks else True


def _value(node: ast.expr, function: FunctionType, owner: Any, first: str) -> Any:
    """A constant, a variable of the notebook that the function only reads, or a field of its object."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = [_value(one, function, owner, first) for one in node.elts]
        return _UNKNOWN if any(one is _UNKNOWN for one in parts) else parts
    code = function.__code__
    if isinstance(node, ast.Name) and node.id not in (*code.co_varnames, *code.co_freevars, *code.co_cellvars):
        return dict.get(function.__globals__, node.id, _UNKNOWN)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == first and first:
        return _field(owner, node.attr)
    return _UNKNOWN


def _field(owner: Any, name: str) -> Any:
    """A field of an object, or of its class; properties and methods are not known."""
    own = kinds.fields_of(owner)
    if name in own:
        return own[name]
    fields = (kinds.class_fields(kind) for kind in kinds.mro_of(type(owner)))
    found = next((one[name] for one in fields if name in one), _UNKNOWN)
    return found if kinds.is_one_of(found, (*_PLAIN, *_LISTS)) else _UNKNOWN
