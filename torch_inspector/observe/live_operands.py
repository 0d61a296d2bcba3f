"""What an operand of small whole numbers stood for, where a part of a tensor or an array that is there tells it."""

from __future__ import annotations

import ast
from typing import Any

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.arrays import copied, is_small, part_of, taken_over
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.fitting import LARGEST, kind_of
from torch_inspector.observe.shapes import UNKNOWN, is_array, is_tensor
from torch_inspector.observe.written import alike, is_written
from torch_inspector.observe.written_later import is_given_away

# Methods that show the same numbers in other sizes.
_VIEWS = frozenset(
    ["unfold", "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "t", "narrow",
     "select", "detach", "contiguous", "flip", "roll", "fliplr", "flipud"]
)  # fmt: skip
# Those that show the same numbers at another place.
_SAME = frozenset(["copy", "clone"])
_DEPTH = 4


def live_operand(scope: Scope, side: ast.expr, depth: int = 0) -> Any:
    """What an operand is now; a part of a plain tensor or array is looked at through a view of its own."""
    value = scope.names.value(side)
    if is_tensor(value) or is_array(value) or depth > _DEPTH:
        return UNKNOWN if _is_given_anew(scope, side) else value
    if isinstance(side, ast.Name):
        given = scope.names.given.get(side.id) or scope.names.given_before(side.id)
        return value if given is None or _may_be_written(scope, side.id) else live_operand(scope, given, depth + 1)
    array = copied(scope.names, side)
    if array is not None:
        return taken_over(scope.names, side, live_operand(scope, array, depth + 1), value)
    return _part(scope, side, value, depth)


def _part(scope: Scope, side: ast.expr, value: Any, depth: int) -> Any:
    """A part, or other sizes, of a live tensor or array; what is known already where there is none."""
    func = side.func if isinstance(side, ast.Call) else None
    if isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _SAME:
        return value if side.args or side.keywords else live_operand(scope, func.value, depth + 1)
    if isinstance(side, ast.Subscript):
        owner, parts = side.value, side.slice.elts if isinstance(side.slice, ast.Tuple) else [side.slice]
    elif isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _VIEWS and not side.keywords:
        owner, parts = func.value, side.args
    else:
        return value
    of, index = live_operand(scope, owner, depth + 1), tuple(_index(scope, part) for part in parts)
    if is_small(of) and None not in index and isinstance(side, ast.Subscript):
        return part_of(of, index, value)
    return value if None in index else _shown(of, func, index, value)


def _shown(of: Any, func: ast.expr | None, index: tuple[Any, ...], otherwise: Any) -> Any:
    """A view of a tensor of small numbers on the CPU, by an index or a method."""
    if type(of) is not torch.Tensor or not of.is_cpu or kind_of(of) is None or of.numel() > LARGEST:
        return otherwise
    try:
        return getattr(of, func.attr)(*index) if isinstance(func, ast.Attribute) else of[index]
    except Exception:  # noqa: BLE001  (the tensor may be another one by now)
        return otherwise


def _may_be_written(scope: Scope, name: str) -> bool:
    """True if a scope writes to a variable by any of its names, or gives it to a function of the user's that does."""
    names, parts = alike(scope.node, frozenset([name])), list(syntax.own_expressions(scope.node))
    return is_written(parts, names) or is_given_away(scope, parts, names)


def _is_given_anew(scope: Scope, side: ast.expr) -> bool:
    """True for an attribute that the function itself gives another value: what it was is not known."""
    if not scope.function or not isinstance(side, ast.Attribute):
        return False
    stored = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.Attribute))
    return any(one.attr == side.attr and not isinstance(one.ctx, ast.Load) for one in stored)


def _index(scope: Scope, part: ast.expr) -> Any:
    """A number, a slice or `...`; None for anything else."""
    if isinstance(part, ast.Constant) and part.value is ...:
        return ...
    if not isinstance(part, ast.Slice):
        value = scope.names.value(part)
        return value if type(value) is int else None
    bounds = [scope.names.value(one) if one is not None else None for one in (part.lower, part.upper, part.step)]
    return slice(*bounds) if all(one is None or type(one) is int for one in bounds) else None
