"""Puts our functions in front of torch's, invisibly, and takes them away again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import CodeType
from typing import Any

from torch_inspector.observe import private

_MISSING = object()
_UNCOUNTED = "<importlib._bootstrap of torch_inspector>"
# First byte of an entry in the table of lines that tells a line without columns.
_NO_COLUMNS = 0x80 | 13 << 3
# Past whatever a user's exception class does with the attribute (frozen dataclasses refuse to set it).
_TRACEBACK = BaseException.__dict__["__traceback__"]


def unframe(error: BaseException) -> None:
    """Takes the calling frame out of an exception's traceback.

    A bare `raise` afterwards does not add it again, so the user sees the traceback that torch alone would give.
    """
    trace = _TRACEBACK.__get__(error)
    if trace is not None:
        _TRACEBACK.__set__(error, trace.tb_next)


def _in_place_of(code: CodeType, other: CodeType) -> CodeType:
    """The code as if it stood on the last line of another function: warnings about its frame name that line."""
    line = max(line for _, _, line in other.co_lines() if line is not None)
    # One entry covers up to 8 units from Python 3.11 on, up to 254 bytes before; each says: the same line.
    new = sys.version_info >= (3, 11)
    size, step = (len(code.co_code) // 2, 8) if new else (len(code.co_code), 254)
    lengths = (min(step, size - start) for start in range(0, size, step))
    table = b"".join(bytes((_NO_COLUMNS | length - 1 if new else length, 0)) for length in lengths)
    return code.replace(co_filename=other.co_filename, co_firstlineno=line, co_linetable=table)


class Patch:
    """One attribute that is ours between `install` and `remove`.

    Args:
        owner: Module or class that holds the attribute.
        name: The attribute.
        make: Gets the original function, gives the one to put in front of it.
        replaces: True for an original that ours does not call, but does the work of: then it stands for its frame.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
        replaces: Callable[[Callable[..., Any]], bool] = lambda _: False,
    ) -> None:
        self._owner = owner
        self._name = name
        self._make = make
        self._replaces = replaces
        self._made: list[tuple[Any, Any]] = []
        """Every wrapper of ours with the original behind it; torch.compile guards on them, so they are used again."""

    def install(self) -> None:
        """Puts our function in place, in front of whatever is there now."""
        current = self._owner.__dict__.get(self._name, _MISSING)
        if current is _MISSING or self._original_of(current) is not _MISSING:
            return
        setattr(self._owner, self._name, self._wrapper_of(current))

    def remove(self) -> None:
        """Puts back the very object that was there, unless somebody else has replaced ours since."""
        original = self._original_of(self._owner.__dict__.get(self._name))
        if original is not _MISSING:
            setattr(self._owner, self._name, original)

    def _wrapper_of(self, original: Any) -> Any:
        known = next((ours for ours, behind in self._made if behind is original), None)
        if known is None:
            known = self._make(original)
            # `warnings` counts frames to find the line that a warning is about, and passes over frames of this name.
            own = known.__code__
            stands = self._replaces(original)
            known.__code__ = _in_place_of(own, original.__code__) if stands else own.replace(co_filename=_UNCOUNTED)
            private.skip_frames(known.__code__, and_below=False)
            known = wraps(original)(known)
            self._made.append((known, original))
        return known

    def _original_of(self, current: Any) -> Any:
        """What one of our wrappers stands before; `_MISSING` for anything that is not ours."""
        return next((behind for ours, behind in self._made if ours is current), _MISSING)
