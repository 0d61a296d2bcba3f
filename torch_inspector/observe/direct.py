"""Models whose `forward` is called by name: `model.forward(x)` goes past `__call__`, and only its layers are seen."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places


def called_by_name(frame: FrameType, places: Places) -> tuple[Any, FrameType] | None:
    """The model whose `forward` runs in a frame that calls a layer, and the user's frame that called it.

    None if it is not `forward` of a module, or the user's own code has not called it.
    """
    code, outer = frame.f_code, frame.f_back
    if code.co_name != "forward" or not code.co_argcount or outer is None or places.file_of(outer) is None:
        return None
    with locals_of(frame) as variables:
        owner = variables.get(code.co_varnames[0])
    return (owner, outer) if kinds.is_a(owner, torch.nn.Module) else None
