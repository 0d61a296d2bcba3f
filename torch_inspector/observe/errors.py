"""The exception that ended a cell: where, and what the failing line named."""

from __future__ import annotations

import traceback
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import ErrorFact, OperandFact, Place
from torch_inspector.observe import lines
from torch_inspector.observe.locals import locals_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch_inspector.observe.place import Places

_MESSAGE_LIMIT = 2_000
_OPERANDS = 12


def error_fact(error: BaseException, places: Places) -> ErrorFact:
    """What is known of an exception without running code of its class."""
    frame, line = _innermost(error, places)
    place = places.place(frame, line) if frame is not None else Place()
    return ErrorFact(
        kind=type(error).__name__,
        message=_message(error),
        place=place,
        operands=_operands(frame, line, places) if frame is not None and line is not None else (),
        interrupted=isinstance(error, KeyboardInterrupt),
    )


def _message(error: BaseException) -> str:
    arguments = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    if len(arguments) == 1 and type(arguments[0]) is str:
        return arguments[0][:_MESSAGE_LIMIT]
    return ""


def _innermost(error: BaseException, places: Places) -> tuple[FrameType | None, int | None]:
    """The last frame of the traceback that runs a cell, and its line."""
    found: tuple[FrameType | None, int | None] = (None, None)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if places.file_of(frame) is not None:
            found = (frame, line)
    return found


def _operands(frame: FrameType, line: int, places: Places) -> tuple[OperandFact, ...]:
    """Tensors and modules that the failing line names."""
    import sys

    file = places.file_of(frame)
    if "torch" not in sys.modules or file is None or file.tree is None:
        return ()
    from torch_inspector.observe import private

    with locals_of(frame) as values, private.unseen():
        names = lines.names_on_line(file.tree, line)
        found = (_operand(name, _resolve(name, values, frame.f_globals)) for name in names)
        return tuple(fact for fact in found if fact is not None)[:_OPERANDS]


def _resolve(name: str, values: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """The object behind `self.encoder.mask`, without running properties or `__getattr__`."""
    from torch_inspector.observe.namespace import attributes_of

    first, *rest = name.split(".")
    thing = values.get(first, names.get(first))
    for part in rest:
        fields = dict(attributes_of(thing))
        for kind in ("_parameters", "_buffers", "_modules"):
            inner = fields.get(kind)
            if type(inner) is dict and part in inner:
                fields = inner
        if part not in fields:
            return None
        thing = fields[part]
    return thing


def _operand(name: str, thing: Any) -> OperandFact | None:
    import torch

    from torch_inspector.observe import layers

    mro = type(thing).__mro__
    if torch.Tensor in mro:
        dtype = str(thing.dtype).removeprefix("torch.")
        return OperandFact(name, "tensor", (str(thing.device),), tuple(thing.shape), dtype)
    if torch.nn.Module in mro:
        devices = {str(p.device) for _, p in layers.walk_parameters(thing)}
        return OperandFact(name, type(thing).__name__, tuple(sorted(devices)), None, "")
    return None
