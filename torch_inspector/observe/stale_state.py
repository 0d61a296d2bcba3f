"""What an optimizer remembers in another number type, or on another device, than its weights have now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import thread_time
from types import FrameType, TracebackType
from typing import Any

import torch

from torch_inspector.facts import StaleStateFact
from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.namespace import hidden, walk_names

# Weights of one optimizer that are compared.
_WEIGHTS = 200
# Time for the search of a name: there is one failure in a cell.
_SEARCH_S = 0.005
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]
_PACKAGE = "torch.optim"


def stale_state(error: BaseException, user: FrameType) -> StaleStateFact | None:
    """The first such state of the optimizer in whose step an exception was raised; None if there is none."""
    entry: TracebackType | None = _TRACEBACK.__get__(error)
    found = None
    while entry is not None:
        frame = entry.tb_frame
        if _is_of_torch(frame):
            with locals_of(frame) as values:
                own = values.get("self")
                found = own if own is not None and kinds.is_a(own, torch.optim.Optimizer) else found
        entry = entry.tb_next
    # A closure that failed inside the step, or a scaler, is another matter.
    return _fact(found, user) if found is not None and _is_of_torch(_last_frame(error)) else None


def _is_of_torch(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE)


def _last_frame(error: BaseException) -> FrameType | None:
    entry: TracebackType | None = _TRACEBACK.__get__(error)
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry.tb_frame if entry is not None else None


def _fact(optimizer: Any, user: FrameType) -> StaleStateFact | None:
    states = kinds.fields_of(optimizer).get("state")
    entries = list(dict.items(states))[:_WEIGHTS] if states is not None and kinds.is_a(states, dict) else []
    for weight, state in entries:
        for name, one in _tensors(weight, state):
            return StaleStateFact(
                path=_name(optimizer, user),
                kind=kinds.class_name(optimizer),
                state=name,
                state_dtype=_text(one.dtype),
                dtype=_text(weight.dtype),
                state_device=str(one.device),
                device=str(weight.device),
            )
    return None


def _tensors(weight: Any, state: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """What was taken down for one weight and does not go with it any more; a count of steps may be anywhere."""
    if not kinds.is_a(weight, torch.Tensor) or not weight.is_floating_point() or type(state) is not dict:
        return
    for name, one in state.items():
        counts = type(name) is str and type(one) is torch.Tensor and one.dim() and one.is_floating_point()
        if counts and (one.dtype != weight.dtype or one.device != weight.device):
            yield name, one


def _text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _name(optimizer: Any, user: FrameType) -> str:
    """What the code of a frame calls the optimizer: a variable, a field of `self`, or what a variable leads to."""
    with locals_of(user) as values:
        names = (*user.f_code.co_varnames, *user.f_code.co_freevars, *user.f_code.co_names)
        plain = (name for name in names if values.get(name, user.f_globals.get(name)) is optimizer)
        own = kinds.fields_of(values["self"]) if "self" in values else {}
        field = next((f"self.{name}" for name, one in own.items() if one is optimizer), "")
        return next(plain, "") or field or _path(optimizer, user.f_globals) or _path(optimizer, values)


def _path(optimizer: Any, variables: Mapping[str, Any]) -> str:
    """The shortest expression for an optimizer that some variables lead to; empty if there is none."""
    own = [(name, value) for name, value in list(variables.items()) if not hidden(name)]
    names = walk_names(own, thread_time() + _SEARCH_S, sampling=True)
    return next((path for path, one in names.optimizers if one is optimizer), "")
