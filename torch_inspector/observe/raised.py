"""Exceptions that the user's variables lead to, and the frames that an exception keeps."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator
from time import thread_time
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from torch_inspector.observe import kinds, sorts
from torch_inspector.observe.paths import attributes_of, key_text, path_of_attribute

# Elements of one container that are looked at, from the front and from the end; containers in containers; and in all.
_ENDS, _DEPTH, _CONTAINERS = 16, 3, 150
_CLOCK_EVERY = 8
# Exceptions that hang on one, as cause, context or in a group, and frames of each.
_CHAIN, _FRAMES = 16, 200
# Asked past the exception's own class, which may define properties of these names.
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]
_LINKS = tuple(BaseException.__dict__[name] for name in ("__cause__", "__context__"))
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", None)


class Passed(NamedTuple):
    """A frame that an exception keeps, and the line at which it was left. Drop it at once."""

    frame: FrameType
    line: int | None


def exceptions_in(names: Iterable[tuple[str, Any]], deadline: float) -> list[tuple[str, BaseException]]:
    """Exceptions that variables hold, themselves or in containers and objects, with their paths.

    Args:
        names: Paths and values.
        deadline: `thread_time()` time at which to stop.
    """
    return _Search(deadline).run(list(names))


class _Search:
    """One look, breadth first."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._sorts: dict[int, str] = dict.fromkeys(sorts.ATOMS, "skip")
        self._seen: set[int] = set()
        self._count = 0
        self._found: list[tuple[str, BaseException]] = []

    def run(self, level: list[tuple[str, Any]]) -> list[tuple[str, BaseException]]:
        for _ in range(_DEPTH):
            level = [entry for path, value in level for entry in self._look(path, value)]
        for path, value in level:
            self._sort(path, value)
        return self._found

    def _look(self, path: str, value: Any) -> Iterable[tuple[str, Any]]:
        sort = self._sort(path, value)
        if sort == "skip" or id(value) in self._seen:
            return ()
        self._seen.add(id(value))
        self._count += 1
        if self._count > _CONTAINERS or (self._count % _CLOCK_EVERY == 0 and thread_time() > self._deadline):
            return ()
        return _parts(sort, path, value)

    def _sort(self, path: str, value: Any) -> str:
        """What to do with a value; an exception is noted."""
        kind = type(value)
        sort = self._sorts.get(id(kind)) or self._sorts.setdefault(id(kind), _sort_of(kind))
        if sort == "exception":
            self._found.append((path, value))
        return "skip" if sort == "exception" else sort


def _sort_of(kind: type[Any]) -> str:
    if kinds.inherits(kind, BaseException):
        return "exception"
    sort = sorts.sort_of(kind)
    return "skip" if sort in ("tensor", "module", "optimizer", "set", "frozenset") else sort


def _parts(sort: str, path: str, value: Any) -> list[tuple[str, Any]]:
    """Entries that may lead somewhere, with their paths."""
    if sort == "object":
        return [(path_of_attribute(path, name), part) for name, part in attributes_of(value)]
    if sort == "mapping":
        keys, parts = sorts.entries(sort, value, 2 * _ENDS)
        return [(f"{path}[{key_text(key)}]", part) for key, part in _worth(zip(keys, parts, strict=True), parts)]
    count = sorts.length(sort, value)
    parts = sorts.elements(sort, value, count if sort != "deque" and count <= 2 * _ENDS else _ENDS)
    places: Iterable[int] = range(len(parts))
    if sort == "list" and count > 2 * _ENDS:
        last = list.__getitem__(value, slice(-_ENDS, None))
        places, parts = [*places, *range(count - len(last), count)], parts + last
    return [(f"{path}[{place}]", part) for place, part in _worth(zip(places, parts, strict=True), parts)]


def _worth(entries: Iterable[tuple[Any, Any]], parts: list[Any]) -> list[tuple[Any, Any]]:
    """Entries that may lead somewhere; nothing is done for each where none does."""
    if sorts.ATOMS.issuperset(map(id, map(type, parts))):
        return []
    return [(key, part) for key, part in entries if id(type(part)) not in sorts.ATOMS]


def chain_of(error: BaseException) -> list[BaseException]:
    """An exception and all that it keeps: its causes and contexts, and the members of a group."""
    chain, seen = [error], {id(error)}
    for one in chain:
        linked = [link.__get__(one) for link in _LINKS]
        if _GROUP is not None and kinds.is_a(one, _GROUP):
            linked += _GROUP.__dict__["exceptions"].__get__(one)
        new = [other for other in linked if other is not None and id(other) not in seen]
        seen.update(map(id, new))
        chain += new[: _CHAIN - len(chain)]
    return chain


def traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an exception, past any property of its class."""
    found = _TRACEBACK.__get__(error)
    return found if type(found) is TracebackType else None


def frames_of(error: BaseException) -> Iterator[Passed]:
    """Every frame that an exception keeps and that runs no more: of its traceback, and those that had called it."""
    seen = _running()
    for one in chain_of(error):
        entry = traceback_of(one)
        callers = _callers(entry.tb_frame) if entry is not None else []
        for frame in callers:
            if id(frame) not in seen:
                seen.add(id(frame))
                yield Passed(frame, frame.f_lineno)
        for frame, line in _entries(entry):
            if id(frame) not in seen:
                seen.add(id(frame))
                yield Passed(frame, line)


def _running() -> set[int]:
    """Frames that this thread is in."""
    frames: set[int] = set()
    here: FrameType | None = sys._getframe()
    while here is not None:
        frames.add(id(here))
        here = here.f_back
    return frames


def _callers(frame: FrameType) -> list[FrameType]:
    """The frames around one, outermost first."""
    found: list[FrameType] = []
    here = frame.f_back
    while here is not None and len(found) < _FRAMES:
        found.insert(0, here)
        here = here.f_back
    return found


def _entries(entry: TracebackType | None) -> list[tuple[FrameType, int]]:
    """Frames and lines of a traceback: of an endless recursion the first and the last."""
    found = []
    while entry is not None:
        found.append((entry.tb_frame, entry.tb_lineno))
        entry = entry.tb_next
    return found if len(found) <= _FRAMES else found[: _FRAMES // 2] + found[-_FRAMES // 2 :]
