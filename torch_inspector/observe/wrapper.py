"""Puts our functions in front of torch's, invisibly, and takes them away again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_MISSING = object()


def unframe(error: BaseException) -> None:
    """Takes the calling frame out of an exception's traceback.

    A bare `raise` afterwards does not add it again, so the user sees the traceback that torch alone would give.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


class Patch:
    """One attribute that is ours while a cell runs.

    The wrapper is one function object for the whole session: torch.compile guards on it.

    Args:
        owner: Module or class that holds the attribute.
        name: The attribute.
        make: Gets the original function, gives the one to put in front of it.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._owner = owner
        self._name = name
        self._make = make
        self._original: Any = _MISSING
        self._ours: Any = None

    def install(self) -> None:
        """Puts our function in place, in front of whatever is there now."""
        current = self._owner.__dict__.get(self._name, _MISSING)
        if current is _MISSING or current is self._ours:
            return
        if current is not self._original:
            self._original = current
            self._ours = wraps(current)(self._make(current))
        setattr(self._owner, self._name, self._ours)

    def remove(self) -> None:
        """Puts back the very object that was there, unless somebody else has replaced ours since."""
        if self._ours is not None and self._owner.__dict__.get(self._name) is self._ours:
            setattr(self._owner, self._name, self._original)
