"""Rows that a norm in float16 has made zero: the squares of their numbers are infinite there, one over that is 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dis import get_instructions
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, ZeroedRows
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.versions import version_of

# The first whole number whose square is beyond float16; 255.96 would do.
_BEYOND = 256
# About a millisecond.
_LARGEST = 1 << 18
# All that a norm needs; with another name in it, rows may be made zero on purpose.
_NEEDED = frozenset(
    ["torch", "pow", "square", "sum", "mean", "sqrt", "rsqrt", "size", "shape", "eps", "epsilon", "EPS", "dim"]
)
# Bytes of code: a norm has some two hundred, and each takes its time to read.
_LONGEST = 2_000
_SCALES = frozenset(["weight", "gain", "gamma", "scale", "g"])
_TESTS = ("COMPARE_OP", "CONTAINS_OP", "STORE_SUBSCR")
_SIGNS = frozenset(["+", "-", "*", "/", "**"])
_HALVES = frozenset([0.5, -0.5])


def is_norm_layer(module: Any) -> bool:
    """True for a module of the user's without parts that is a norm by its code, and has no scale that is zero."""
    function = kinds.class_fields(type(module)).get("forward")
    if not _is_plain(function) or function.__code__.co_argcount != 2:  # noqa: PLR2004  (itself and a tensor)
        return False
    fields = kinds.fields_of(module)
    own: Any = fields.get("_parameters")
    scales: dict[str, Any] = own if kinds.is_registry(own) else {}
    numbers = {name for name, one in fields.items() if type(name) is str and _is_a_number(one)}
    learnt = _NEEDED | (_SCALES & scales.keys()) | numbers
    zero = any(one is not None and _is_zero(one) for one in scales.values())
    return _normalises(function.__code__, learnt) and not fields.get("_modules") and not zero


def zeroed(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`out = norm(h)`, a function of the user's, where both are still there as they were."""
    call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if scope.function or not isinstance(call, ast.Call) or not isinstance(node, ast.Assign) or len(call.args) != 1:
        return
    given, target = call.args[0], node.targets[0]
    if not isinstance(given, ast.Name) or not isinstance(target, ast.Name) or given.id == target.id or call.keywords:
        return
    body: list[ast.stmt] = list(getattr(scope.node, "body", ()))
    if node not in body or len(stores_in(scope.node).get(target.id, ())) != 1:
        return
    before, made = scope.names.value(given), scope.reading.names.get(target.id)
    if type(before) is not torch.Tensor or type(made) is not torch.Tensor or not is_norm(scope.names.value(call.func)):
        return
    # In the last statement nothing comes after it that could change them.
    if node is not body[-1] and (version_of(made) or version_of(before)):
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
    """True for a function of the notebook that divides by the root of a sum of squares, and does nothing else."""
    if not _is_plain(function):
        return False
    code = function.__code__
    more = set(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    return more <= _NEEDED and _normalises(code, _NEEDED)


def _is_plain(function: Any) -> bool:
    return type(function) is FunctionType and function.__module__ == "__main__"


@lru_cache(maxsize=512)
def _normalises(code: CodeType, known: frozenset[str]) -> bool:
    """True if code takes a sum of squares, its root, and divides, with known names and no comparison."""
    names = names_of(code)
    if not names <= known or len(code.co_code) > _LONGEST:
        return False
    steps = list(get_instructions(code))
    signs = [one.argrepr.rstrip("=") for one in steps if one.opname == "BINARY_OP" and one.argrepr != "[]"]
    if not _SIGNS.issuperset(signs) or any(one.opname in _TESTS for one in steps):
        return False
    powers = {last.argval for last, one in pairwise(steps) if one.opname == "BINARY_OP" and one.argrepr == "**"}
    if not powers <= _HALVES | {2}:
        return False
    squares = "square" in names or 2 in powers or ("pow" in names and any(one.argval == 2 for one in steps))  # noqa: PLR2004
    roots = not names.isdisjoint(("sqrt", "rsqrt")) or not powers.isdisjoint(_HALVES)
    divides = "rsqrt" in names or -0.5 in powers or "/" in signs  # noqa: PLR2004
    return squares and roots and divides and not names.isdisjoint(("sum", "mean"))


def zeroed_rows(given: Any, made: Any) -> ZeroedRows | None:
    """The rows, if they are exactly those with numbers whose squares, or the sum of whose squares, are infinite."""
    if not (_is_readable(given) and _is_readable(made)) or given.shape != made.shape:
        return None
    largest = as_torch.detach(given).float().abs().amax(-1).reshape(-1)
    zero = ~as_torch.detach(made).bool().any(-1).reshape(-1)
    if not bool(torch.isfinite(largest).all()):
        return None
    lost, sums = zero & (largest > 0), as_torch.detach(given).float().square().sum(-1).reshape(-1)
    exactly = any(bool(lost.eq(wide).all()) for wide in (largest >= _BEYOND, sums >= _BEYOND**2))
    count = int(lost.sum()) if exactly else 0
    return ZeroedRows(count, int(zero.numel()), float(largest.max())) if count else None


def _is_a_number(value: Any) -> bool:
    """True for `self.variance_epsilon` and `self.scale`: no row becomes zero by a number that is not."""
    return kinds.is_one_of(value, (int, float)) and value != 0


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
    return storage is None or not storage[1] or not bool(as_torch.detach(parameter).any())
