"""The user's frames around a call: their lines, and the loops around these."""

from __future__ import annotations

from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import CallerFact
from torch_inspector.observe import lines

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Frames outwards from a call. A trainer library nests some dozens, the user's own code a few.
_FRAMES, _OF_USER = 60, 6
# Files of torch that run modules without gradients as a part of training: batch statistics for averaged weights, and
# a checkpoint, which runs the module again with gradients later.
_MACHINERY = ("torch.optim.swa_utils", "torch.utils.checkpoint")


class Callers(NamedTuple):
    """Who made a call."""

    module: str
    """Name of the Python module that made it, or of the part of torch on whose behalf it was made."""
    facts: tuple[CallerFact, ...]
    """The user's frames, innermost first."""
    same_input: bool
    """True if the innermost loop around the call gives it the same input each time."""


def callers_of(frame: FrameType, places: Places) -> Callers:
    """Reads the frames around a call, from the one that made it outwards."""
    facts: list[CallerFact] = []
    module, looped, same = _module_name(frame), False, False
    here: FrameType | None = frame
    for _ in range(_FRAMES):
        if here is None or len(facts) >= _OF_USER:
            break
        if _module_name(here) in _MACHINERY:
            module = _module_name(here)
        file = places.file_of(here)
        if file is not None and file.tree is not None:
            around = lines.loops_around(file.tree, here.f_lineno)
            same = same or (not looped and lines.repeats_input(file.tree, here.f_lineno, _columns(here)))
            looped = looped or bool(around)
            loops = tuple((first + file.offset, last + file.offset) for first, last in around)
            facts.append(CallerFact(places.place(here, here.f_lineno), loops))
        here = here.f_back
    return Callers(module, tuple(facts), same)


def _module_name(frame: FrameType) -> str:
    name = dict.get(frame.f_globals, "__name__", "")
    return name if type(name) is str else ""


def _columns(frame: FrameType) -> tuple[int, int] | None:
    """Where in its lines the call that a frame is making begins and ends; None before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    _, _, first, last = next(islice(positions(), frame.f_lasti // 2, None), (None, None, None, None))
    return None if first is None or last is None else (first, last)
