"""Infinities in float16 that come of a division by zero, which every type of numbers has: no end was passed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.half_names import Frame, lines_of
from torch_inspector.observe.half_reader import Reader
from torch_inspector.observe.half_steps import REFUSED
from torch_inspector.observe.half_twins import Pair
from torch_inspector.observe.in_memory import is_in_memory

KIND = "zero-divided"

_ELEMENTS = 300_000


def zero_divided(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`name = a / b` of which each infinite number is one in double precision, too, or stands where `b` is zero."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if scope.function or not isinstance(target, ast.Name) or not isinstance(node, ast.Assign):
        return
    value = scope.reading.names.get(target.id)
    if type(value) is not torch.Tensor or any(line > node.lineno for line in lines_of(scope.node, target.id)):
        return
    with private.unseen(), torch.no_grad():
        infinite = _infinite(value)
        if infinite is None or not (_by_zero(scope, node, infinite) or _in_double(scope, node, infinite)):
            return
    yield scope.fact(KIND, node.value, statement)


def _infinite(value: Any) -> torch.Tensor | None:
    """Where a tensor in float16 is infinite; None if it is nowhere, or cannot be read."""
    if as_torch.dtype(value) is not torch.float16 or not is_in_memory(value):
        return None
    if not 0 < as_torch.numel(value) <= _ELEMENTS:
        return None
    found = as_torch.detach(value).isinf()
    return found if bool(found.any()) else None


def _by_zero(scope: Scope, node: ast.Assign, infinite: torch.Tensor) -> bool:
    """True if what a quotient is divided by is zero wherever it is infinite."""
    division = node.value
    if not isinstance(division, ast.BinOp) or not isinstance(division.op, ast.Div):
        return False
    try:
        divisor = Reader(scope).value(division.right, Frame(scope, node.lineno))
        zero = divisor.exact == 0 if type(divisor) is Pair else None
        return zero is not None and bool(zero.expand(infinite.shape)[infinite].all())
    except REFUSED:
        return False


def _in_double(scope: Scope, node: ast.Assign, infinite: torch.Tensor) -> bool:
    """True if the statement, computed again, is infinite in double precision wherever it is in float16."""
    try:
        found = Reader(scope).value(node.value, Frame(scope, node.lineno))
    except REFUSED:
        return False
    if type(found) is not Pair or found.exact.shape != infinite.shape:
        return False
    same = bool((found.actual.isinf() == infinite).all())
    return same and not bool(found.exact[infinite].isfinite().any())
