"""The attributes through which an object in a circle leads back to itself: one of them is to be broken."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from functools import partial
from time import thread_time
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from torch_inspector.observe import kinds

# Objects that are asked, time for it, and attributes that are named.
_MOST, _LOOK_S, _NAMED = 5_000, 0.005, 3
# What registers the parts of a module: nobody sets these by hand.
_REGISTERED = frozenset(("_modules", "_parameters", "_buffers"))
METHOD, FUNCTION, MANY = "method", "function", "many"
_THROUGH = (
    ((MethodType,), METHOD),
    ((FunctionType, partial), FUNCTION),
    ((list, tuple, set, frozenset, dict, OrderedDict, defaultdict, deque), MANY),
)
_Way = tuple[tuple[str, str], ...]


class Ring(NamedTuple):
    """The attributes of a way back."""

    names: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    """What each leads through to the next object: a bound method, a function or a container of many; else empty."""


def ring(thing: Any, garbage: frozenset[int]) -> Ring:
    """Class and name of the attributes on the shortest way back, `Trainer.net`; empty if it is too long to tell."""
    deadline, seen = thread_time() + _LOOK_S, {id(thing)}
    open_ways: deque[tuple[Any, _Way]] = deque([(thing, ())])
    while open_ways and len(seen) < _MOST and thread_time() < deadline:
        here, way = open_ways.popleft()
        way = _through(here, way)
        for name, part in _parts(here):
            longer = (*way, (name, "")) if name else way
            if id(part) == id(thing):
                return _told(longer)
            if id(part) in garbage and id(part) not in seen:
                seen.add(id(part))
                open_ways.append((part, longer))
    return Ring()


def _through(here: Any, way: _Way) -> _Way:
    """The way with what its last attribute leads through; of a list of methods, the method."""
    kind = type(here)
    how = next((said for known, said in _THROUGH if any(kind is one for one in known)), "")
    if not way or not how or way[-1][1] not in ("", MANY):
        return way
    return (*way[:-1], (way[-1][0], how))


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, with the attribute where that is one."""
    kind = kinds.class_name(thing)
    for name, part in list(kinds.fields_of(thing).items()):
        if type(name) is str and name in _REGISTERED and type(part) is dict:
            yield from (("", one) for one in list(part.values()))
        elif type(name) is str:
            yield f"{kind}.{name}", part
    for part in gc.get_referents(thing):
        yield "", part


def _told(way: _Way) -> Ring:
    return Ring(tuple(name for name, _ in way), tuple(how for _, how in way)) if len(way) <= _NAMED else Ring()
