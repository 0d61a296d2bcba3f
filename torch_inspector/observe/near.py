"""What the variables of the user's frames around a call lead to in one or two attributes: `runner.engine.scaler`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import Place
from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Frames of the user, attributes on the way, and objects that are asked in one frame.
_FRAMES, _DEPTH, _MOST = 3, 2, 200
# What is not asked for its parts: layers, and what was imported, classes or functions, which have thousands.
_CLOSED = (torch.nn.Module, ModuleType, type, FunctionType)


class Near(NamedTuple):
    """The line in one frame, and what is called what there, by address."""

    place: Place
    paths: dict[int, str]


def near(frame: FrameType, places: Places, kind: tuple[type[Any], ...]) -> tuple[Near, ...]:
    """The user's frames from the innermost outwards, with the objects of some classes that can be named in them."""
    found: list[Near] = []
    here = places.user_frame(frame)
    while here is not None and len(found) < _FRAMES:
        found.append(Near(places.place(here, here.f_lineno), _paths(here, kind)))
        here = places.user_frame(here.f_back)
    return tuple(found)


def _paths(frame: FrameType, kind: tuple[type[Any], ...]) -> dict[int, str]:
    found: dict[int, str] = {}
    with locals_of(frame) as values:
        level = [] if frame.f_code.co_name == "<module>" else list(values.items())
    known = frame.f_globals
    level = [(name, known[name]) for name in frame.f_code.co_names if name in known] + level
    left = _MOST
    for _ in range(_DEPTH + 1):
        following: list[tuple[str, Any]] = []
        for path, thing in level[: max(left, 0)]:
            if any(kinds.is_a(thing, one) for one in kind):
                found.setdefault(id(thing), path)
            elif not any(kinds.is_a(thing, one) for one in _CLOSED) and len(following) < _MOST:
                following.extend(islice(_attributes(path, thing), _MOST))
        left -= len(level)
        level = following
    return found


def _attributes(path: str, thing: Any) -> Iterator[tuple[str, Any]]:
    for name, part in list(kinds.fields_of(thing).items()):
        if type(name) is str and name.isidentifier():
            yield f"{path}.{name}", part
