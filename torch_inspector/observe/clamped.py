"""Gradients that a line has clipped by hand, with `clamp_` and numbers, between `backward()` and the step."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import called
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.clamps import Clamp, clamp_before
from torch_inspector.observe.failing import Scope
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.place import CodeFile

ELEMENTS = 300_000
"""Elements of gradients that are read before one clip or step, on the CPU."""
_ASKS = ("parameters", "named_parameters")
_SAME_ELEMENTS = ("list", "tuple", "reversed")


class Clamped(NamedTuple):
    """Such a line."""

    line: int
    function: str
    limit: float


def clamped(file: CodeFile, frame: FrameType, optimizer: Any) -> Clamped | None:
    """The line before the one that a frame is at, if it has cut gradients of an optimizer; None if there is none."""
    if file.tree is None or "grad" not in file.code:
        return None
    clamp = clamp_before(file.tree, frame.f_lineno)
    if clamp is None or not _is_at_limit(_touched(clamp, frame, optimizer), clamp):
        return None
    return Clamped(clamp.call.lineno, clamp.function, max(-clamp.low, clamp.high))


def _touched(clamp: Clamp, frame: FrameType, optimizer: Any) -> list[torch.Tensor]:
    """Parameters of an optimizer that the line went over."""
    held = {id(p): p for group in parameters_of(optimizer) for p in group}
    with locals_of(frame) as values:
        scope = Scope(values, frame)
        keys = _keys(clamp.over, scope) if clamp.over is not None else None
        if keys is None and clamp.lasts:
            key = id(scope.value(clamp.owner)[1])
            # Of a loop over something unknown, the variable has its last value: it may have gone over all.
            keys = {key} if clamp.over is None else set(held) if key in held else None
        return [held[key] for key in keys or () if key in held]


def _keys(over: ast.expr, scope: Scope) -> set[int] | None:
    """Addresses of what is looped over; None if it is not known."""
    if isinstance(over, ast.Call) and len(over.args) == 1 and called(over) in _SAME_ELEMENTS:
        return _keys(over.args[0], scope)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _ASKS:
        module = scope.value(over.func.value)[1]
        known = kinds.is_a(module, torch.nn.Module)
        return {id(p) for _, p in layers.walk_parameters(module)} if known else None
    some = scope.value(over)[1]
    return set(map(id, some)) if kinds.is_one_of(some, (list, tuple)) else None


def _is_at_limit(parameters: list[torch.Tensor], clamp: Clamp) -> bool:
    """True if no number in some gradients is beyond the limits and one is just there; False if it cannot be read."""
    left, reached = ELEMENTS, False
    for parameter in parameters:
        gradient = as_torch.grad(parameter) if as_torch.is_leaf(parameter) else None
        if gradient is None or not gradient.numel():
            continue
        left -= gradient.numel()
        if left < 0 or not is_in_memory(gradient) or not gradient.is_floating_point():
            return False
        least, most = as_torch.detach(gradient).aminmax()
        if not (bool(least >= clamp.low) and bool(most <= clamp.high)):
            return False
        reached = reached or bool(least == clamp.low) or bool(most == clamp.high)
    return reached
