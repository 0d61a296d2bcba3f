"""The numbers for which a binary loss refused its prediction."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from torch_inspector.facts import OutsideFact
from torch_inspector.observe import as_torch
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.locals import locals_of

_LOSS = "binary_cross_entropy"
# Elements that are read.
_ELEMENTS = 10_000_000
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def outside_fact(error: BaseException) -> OutsideFact | None:
    """What the loss was given, as torch's own frame holds it; None if that cannot be read."""
    entry: TracebackType | None = _TRACEBACK.__get__(error)
    found = None
    while entry is not None:
        frame = entry.tb_frame
        if frame.f_code.co_name == _LOSS and frame.f_globals.get("__name__") == "torch.nn.functional":
            with locals_of(frame) as values:
                found = _range(values.get("input"))
        entry = entry.tb_next
    return found


def _range(given: Any) -> OutsideFact | None:
    if not is_in_memory(given) or not given.is_floating_point() or not 0 < given.numel() <= _ELEMENTS:
        return None
    values = as_torch.detach(given)
    nan = int(values.isnan().sum())
    low, high = values.nan_to_num(0.0).aminmax()
    return OutsideFact(float(low), float(high), nan, values.numel())
