"""Reads the variables of a frame and leaves no trace."""

from __future__ import annotations

import dis
import inspect
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from torch_inspector.facts.made_of import ingredients_of

# The frame, our name, the name in the caller's `with` and the argument of the count itself: anybody else is the
# user's own `locals()`.
_OWN_REFERENCES = 4
# Code that names one of these may hold the dictionary which a look would fill again.
_ASKS = frozenset(["dir", "eval", "exec", "locals", "vars"])


def _kind_of_locals() -> type:
    """What `f_locals` of a function is: from Python 3.13 on a view of the frame."""
    return type(sys._getframe().f_locals)


_VIEW = _kind_of_locals()


@contextmanager
def locals_of(frame: FrameType, *, asked: bool = False) -> Iterator[Mapping[str, Any]]:
    """The variables of a frame, for the time of the block.

    Up to Python 3.12, `f_locals` of a function leaves a copy in the frame, which would keep tensors alive after the
    user's own `del`. The copy is emptied again, unless the user's code holds it. Where it could, because the function
    asks for its variables itself, nothing is read: the look would change the user's dictionary.

    Args:
        frame: Whose variables.
        asked: True if the user has asked for the look, so that they are read in any case.
    """
    function = sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if function and not asked and _asks(frame.f_code):
        yield {}
        return
    values = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED and _VIEW is not dict and type(values) is _VIEW:
        # At the top level while a comprehension runs, such a view shows the variables of the comprehension only.
        yield ChainMap(values, frame.f_globals)
        return
    try:
        yield values
    finally:
        if function and type(values) is dict and sys.getrefcount(values) <= _OWN_REFERENCES:
            values.clear()


def names_in(code: CodeType, text: str) -> list[str]:
    """The variables that code names; at the top of a cell also what these are made of.

    IPython runs the last expression of a cell apart, as code of its own.

    Args:
        code: That of a frame.
        text: That of its cell.
    """
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
    return ingredients_of(text if code.co_name == "<module>" else "", names)


def _asks(code: CodeType) -> bool:
    """True if code uses one of these functions; `model.eval()` has only the name in common."""
    if _ASKS.isdisjoint(code.co_names):
        return False
    return any(one.argval in _ASKS for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
