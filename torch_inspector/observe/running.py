"""Which layer of which module was running when an exception was raised."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import LayerFact
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.naming import name_in

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Frames of one traceback.
_FRAMES = 200
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def running_layer(error: BaseException, places: Places) -> LayerFact | None:
    """The innermost module whose method failed, and the outermost around it; None if no module was running."""
    root: Any = None
    name, layer = "", None
    caller = None
    for entry in _entries(error):
        here = _module_of(entry)
        if here is not None and root is None:
            root, name = here, name_in(caller, here)
        layer = here if here is not None else layer
        caller = entry.tb_frame if places.file_of(entry.tb_frame) is not None else caller
    if root is None or layer is None:
        return None
    fields = kinds.fields_of(layer)
    path = next((path for path, one in layers.walk_modules(root) if one is layer), "")
    tracks, training = fields.get("track_running_stats"), fields.get("training")
    return LayerFact(name, kinds.class_name(root), path, kinds.class_name(layer), training is True, tracks is not False)


def _entries(error: BaseException) -> Iterator[TracebackType]:
    entry: TracebackType | None = _TRACEBACK.__get__(error)
    for _ in range(_FRAMES):
        if entry is None:
            return
        yield entry
        entry = entry.tb_next


def _module_of(entry: TracebackType) -> Any:
    """The module whose method a frame runs."""
    code = entry.tb_frame.f_code
    if not code.co_argcount or code.co_varnames[0] != "self":
        return None
    with locals_of(entry.tb_frame) as values:
        owner = values.get("self")
    return owner if owner is not None and kinds.is_a(owner, torch.nn.Module) else None
