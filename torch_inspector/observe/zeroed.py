"""Rows that a norm in float16 has made zero: the squares of their numbers are infinite there, one over that is 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, ZeroedRows
from torch_inspector.observe import kinds, private
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.naming import names_of

# The first whole number whose square is beyond float16; 255.96 would do.
_BEYOND = 256
# About a millisecond.
_LARGEST = 1 << 18
_SQUARES, _ROOTS = frozenset(["pow", "square"]), frozenset(["sqrt", "rsqrt"])
# What makes rows zero itself, or may.
_OTHERS = frozenset(
    ["relu", "mask", "where", "masked_fill", "dropout", "clamp", "clip", "threshold", "zeros", "zeros_like", "tril",
     "triu", "zero_", "sign", "floor", "round", "gather", "scatter"]
)  # fmt: skip


def is_norm_layer(module: Any) -> bool:
    """True for a module of the user's without parts that is a norm by its code, and has no scale that is zero."""
    if not is_norm(kinds.class_fields(type(module)).get("forward")):
        return False
    fields = kinds.fields_of(module)
    own: Any = fields.get("_parameters")
    scales = [one for one in dict.values(own) if one is not None] if type(own) is dict else [None]
    return not fields.get("_modules") and not any(_is_zero(one) for one in scales)


def zeroed(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`out = norm(h)`, a function of the user's, where both are still there."""
    call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if scope.function or not isinstance(call, ast.Call) or not isinstance(node, ast.Assign) or len(call.args) != 1:
        return
    given, target = call.args[0], node.targets[0]
    if not isinstance(given, ast.Name) or not isinstance(target, ast.Name) or given.id == target.id:
        return
    before, made = scope.names.value(given), scope.reading.names.get(target.id)
    if type(before) is not torch.Tensor or type(made) is not torch.Tensor or not is_norm(scope.names.value(call.func)):
        return
    rows = zeroed_rows(before, made)
    if rows is not None:
        yield scope.fact(
            "zeroed",
            call,
            statement,
            names=(given.id,),
            shapes=((rows.count, rows.total),),
            detail=f"{rows.largest:,.0f}",
        )


def is_norm(function: Any) -> bool:
    """True for a function of the notebook that squares, takes a root and divides, and makes no zeros of its own."""
    if type(function) is not FunctionType or function.__module__ != "__main__":
        return False
    return _normalises(function.__code__)


@lru_cache(maxsize=512)
def _normalises(code: CodeType) -> bool:
    names = names_of(code)
    powers = any(one.opname == "BINARY_OP" and one.argrepr == "**" for one in get_instructions(code))
    return bool((names & _SQUARES or powers) and (names & _ROOTS or powers)) and not names & _OTHERS


def zeroed_rows(given: Any, made: Any) -> ZeroedRows | None:
    """The rows, if they are exactly those with numbers whose squares, or the sum of whose squares, are infinite."""
    if not (_is_readable(given) and _is_readable(made)) or given.shape != made.shape:
        return None
    largest = given.detach().float().abs().amax(-1).reshape(-1)
    zero = ~made.detach().bool().any(-1).reshape(-1)
    if not bool(torch.isfinite(largest).all()):
        return None
    lost, sums = zero & (largest > 0), given.detach().float().square().sum(-1).reshape(-1)
    exactly = any(bool(lost.eq(wide).all()) for wide in (largest >= _BEYOND, sums >= _BEYOND**2))
    count = int(lost.sum()) if exactly else 0
    return ZeroedRows(count, int(zero.numel()), float(largest.max())) if count else None


def _is_readable(tensor: Any) -> bool:
    if type(tensor) is not torch.Tensor or not tensor.is_cpu or tensor.dtype is not torch.float16 or not tensor.dim():
        return False
    storage = private.storage_of(tensor)
    strided = tensor.layout is torch.strided and storage is not None and storage[1] > 0
    return strided and 0 < tensor.numel() <= _LARGEST and tensor.shape[-1] > 1


def _is_zero(parameter: Any) -> bool:
    """True for a scale that is zero at first on purpose; where that is not known, too."""
    if type(parameter) is not torch.nn.Parameter or not parameter.is_cpu or parameter.numel() > _LARGEST:
        return True
    storage = private.storage_of(parameter)
    return storage is None or not storage[1] or not bool(parameter.detach().any())
