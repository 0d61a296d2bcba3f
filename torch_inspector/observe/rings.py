"""The attributes through which an object in a circle leads back to itself: one of them is to be broken."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from time import thread_time
from typing import Any

from torch_inspector.observe import kinds

# Objects that are asked, time for it, and attributes that are named.
_MOST, _LOOK_S, _NAMED = 5_000, 0.005, 3
# What registers the parts of a module: nobody sets these by hand.
_REGISTERED = frozenset(("_modules", "_parameters", "_buffers"))


def ring(thing: Any, garbage: frozenset[int]) -> tuple[str, ...]:
    """Class and name of the attributes on the shortest way back, `Trainer.net`; empty if it is too long to tell."""
    deadline, seen = thread_time() + _LOOK_S, {id(thing)}
    open_ways: deque[tuple[Any, tuple[str, ...]]] = deque([(thing, ())])
    while open_ways and len(seen) < _MOST and thread_time() < deadline:
        here, way = open_ways.popleft()
        for name, part in _parts(here):
            if id(part) == id(thing):
                return _told((*way, name))
            if id(part) in garbage and id(part) not in seen:
                seen.add(id(part))
                open_ways.append((part, (*way, name)))
    return ()


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, with the attribute where that is one."""
    kind = kinds.class_name(thing)
    for name, part in list(kinds.fields_of(thing).items()):
        if type(name) is str:
            yield "" if name in _REGISTERED else f"{kind}.{name}", part
    for part in gc.get_referents(thing):
        yield "", part


def _told(way: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple(name for name in way if name)
    return named if len(named) <= _NAMED else ()
