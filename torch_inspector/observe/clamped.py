"""Gradients that a line clips by hand, with `clamp_` and numbers, between `backward()` and the step."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.place import CodeFile

_CLAMPS = frozenset(["clamp", "clamp_", "clip", "clip_"])
# Elements of gradients that are read.
_ELEMENTS = 300_000


class Clamped(NamedTuple):
    """Such a line."""

    line: int
    function: str
    limit: float


def clamped(file: CodeFile, frame: FrameType, optimizer: Any) -> Clamped | None:
    """The line before the one that a frame is at, if the gradients are within its limits; None if there is none."""
    if file.tree is None or "grad" not in file.code:
        return None
    line = frame.f_lineno
    scope = syntax.scope_at(file.tree, line)
    tested = {id(part) for one in syntax.own_expressions(scope) if isinstance(one, ast.If) for part in syntax.walk(one)}
    calls = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Call) and id(one) not in tested]
    before = [one.lineno for one in calls if _is_backward(one) and one.lineno < line]
    between = [one for one in calls if max(before, default=line) < one.lineno < line]
    found = [limited for one in between if (limited := _limited(one)) is not None]
    return found[0] if len(found) == 1 and _are_within(optimizer, found[0].limit) else None


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _limited(call: ast.Call) -> Clamped | None:
    """`p.grad.data.clamp_(-1, 1)`: of variables the limit is not known."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _CLAMPS:
        return None
    owner = syntax.attached(function.value) or function.value
    try:
        limits = [ast.literal_eval(one) for one in (*call.args, *(keyword.value for keyword in call.keywords))]
    except (ValueError, TypeError):
        return None
    plain = len(limits) == 2 and all(type(one) in (int, float) for one in limits)  # noqa: PLR2004
    if not plain or not isinstance(owner, ast.Attribute) or owner.attr != "grad":
        return None
    return Clamped(call.lineno, function.attr, float(max(map(abs, limits))))


def _are_within(optimizer: Any, limit: float) -> bool:
    """True if no number in the gradients of an optimizer is beyond a limit; False for what is not in memory."""
    left = _ELEMENTS
    for parameter in (p for group in parameters_of(optimizer) for p in group):
        gradient = parameter.grad if parameter.is_leaf else None
        if gradient is None:
            continue
        left -= gradient.numel()
        if left < 0 or not is_in_memory(gradient) or not bool(gradient.detach().abs().max() <= limit):
            return False
    return left < _ELEMENTS
