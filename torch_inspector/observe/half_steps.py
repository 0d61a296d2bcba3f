"""Why a variable in float16 is NaN: its statement computed again of live numbers, beside double precision.

Only arithmetic of torch is computed, on copies without history, never code of the user: functions and modules are read
statement by statement. Nothing is said unless as many numbers come out as NaN as the variable has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact
from torch_inspector.facts.place import Place
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.half_names import Frame, lines_of, straight
from torch_inspector.observe.half_reader import Reader
from torch_inspector.observe.half_twins import Pair, UnknownError
from torch_inspector.observe.in_memory import is_in_memory

KIND = "half-step"

_ELEMENTS = 300_000
# What torch raises for shapes and types that do not fit, where a text is not what ran.
REFUSED = (
    UnknownError,
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    ZeroDivisionError,
    AttributeError,
)


def half_steps(scope: Scope, node: ast.AST, _: ast.stmt) -> Iterator[ExpressionFact]:
    """The step at which float16 went wrong behind `name = …`, where it is known."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if scope.function or not isinstance(target, ast.Name) or not isinstance(node, ast.Assign):
        return
    value = scope.reading.names.get(target.id)
    body = scope.node.body if isinstance(scope.node, ast.Module) else []
    runs_once = any(one is node for one in straight(body))
    if type(value) is not torch.Tensor or not runs_once:
        return
    if any(line > node.lineno for line in lines_of(scope.node, target.id)):
        return
    with private.unseen(), torch.no_grad():
        count = _nan_count(value)
        if not count:
            return
        try:
            found = Reader(scope).value(node.value, Frame(scope, node.lineno))
            same = type(found) is Pair and int(found.actual.isnan().sum()) == count
        except REFUSED:
            return
    if same and found.cause is not None and bool(found.exact.isfinite().all()):
        cause, total = found.cause, as_torch.numel(value)
        yield ExpressionFact(
            KIND,
            Place(cause.cell, cause.line, cause.function),
            ast.unparse(cause.node),
            target=target.id,
            names=(target.id, "over" if cause.is_over else "under"),
            shapes=((count, total),),
            detail=f"{cause.extreme:.6g}",
        )


def _nan_count(value: Any) -> int:
    if as_torch.dtype(value) is not torch.float16 or not is_in_memory(value):
        return 0
    return int(as_torch.detach(value).isnan().sum()) if 0 < as_torch.numel(value) <= _ELEMENTS else 0
