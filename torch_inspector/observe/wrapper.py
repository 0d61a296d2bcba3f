"""Puts our functions in front of torch's, invisibly, and takes them away again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch_inspector.observe import private

_MISSING = object()
_UNCOUNTED = "<importlib._bootstrap of torch_inspector>"
# Past whatever a user's exception class does with the attribute (frozen dataclasses refuse to set it).
_TRACEBACK = BaseException.__dict__["__traceback__"]


def unframe(error: BaseException) -> None:
    """Takes the calling frame out of an exception's traceback.

    A bare `raise` afterwards does not add it again, so the user sees the traceback that torch alone would give.
    """
    trace = _TRACEBACK.__get__(error)
    if trace is not None:
        _TRACEBACK.__set__(error, trace.tb_next)


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
            file = original.__code__.co_filename if self._replaces(original) else _UNCOUNTED
            known.__code__ = known.__code__.replace(co_filename=file)
            private.skip_frames(known.__code__, and_below=False)
            known = wraps(original)(known)
            self._made.append((known, original))
        return known

    def _original_of(self, current: Any) -> Any:
        """What one of our wrappers stands before; `_MISSING` for anything that is not ours."""
        return next((behind for ours, behind in self._made if ours is current), _MISSING)
