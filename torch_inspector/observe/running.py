"""Which layer of which module was running when an exception was raised."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import LayerFact
from torch_inspector.observe import kinds, layers, private
from torch_inspector.observe.constructed import maker_of, settings_of, torchs_kind
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.naming import name_in
from torch_inspector.observe.shapes import shape_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Frames of one traceback.
_FRAMES = 200
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def running_layer(error: BaseException, places: Places) -> LayerFact | None:
    """The innermost module whose method failed, and the outermost around it; None if no module was running."""
    root: Any = None
    name, layer, last = "", None, None
    caller = None
    for entry in _entries(error):
        here = _module_of(entry)
        if here is not None and root is None:
            root, name = here, name_in(caller, here)
        # A `forward` may hand on something else than it was given, as those do that add the axis of a batch.
        if here is not None and (here is not layer or not _adds_batch(last)):
            last = entry
        layer = here if here is not None else layer
        caller = entry.tb_frame if places.file_of(entry.tb_frame) is not None else caller
    if root is None or layer is None or last is None:
        return None
    fields = kinds.fields_of(layer)
    path = next((path for path, one in layers.walk_modules(root) if one is layer), "")
    tracks, training = fields.get("track_running_stats"), fields.get("training")
    fact = LayerFact(name, kinds.class_name(root), path, kinds.class_name(layer), training is True, tracks is not False)
    kind = torchs_kind(layer)
    got = _given(last)
    if kind is None or got is None:
        return fact
    fact = fact._replace(family=kind.__name__, settings=settings_of(layer, kind), maker=maker_of(layer, kind))
    with private.unseen():
        extremes = _extremes(got) if kind is torch.nn.Embedding else None
        return fact._replace(owner=_owner(root, path), got=shape_of(got), extremes=extremes)


def _adds_batch(entry: TracebackType | None) -> bool:
    """True for the `forward` of a layer that takes an input without the axis of a batch."""
    code = entry.tb_frame.f_code if entry is not None else None
    return code is not None and code.co_name == "forward" and code.co_filename.endswith("instancenorm.py")


def _owner(root: Any, path: str) -> str:
    """The class of the module that holds a layer, if it is of the notebook."""
    above = path.rpartition(".")[0]
    holder = next((one for name, one in layers.walk_modules(root) if name == above), None) if path else None
    own = holder is not None and kinds.module_of(type(holder)) == "__main__"
    return kinds.class_name(holder) if own else ""


def _given(entry: TracebackType) -> torch.Tensor | None:
    """The tensor that a `forward` has as its first argument."""
    code = entry.tb_frame.f_code
    first = code.co_varnames[1 : code.co_argcount][:1]
    with locals_of(entry.tb_frame) as values:
        given = values.get(first[0]) if first else None
    return given if kinds.is_a(given, torch.Tensor) else None


def _extremes(ids: torch.Tensor) -> tuple[int, int] | None:
    plain = type(ids) is torch.Tensor and is_in_memory(ids) and not ids.dtype.is_floating_point
    return (int(ids.min()), int(ids.max())) if plain and ids.numel() else None


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
