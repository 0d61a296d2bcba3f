"""What the user's code calls an object."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType

from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of

# A class body and a cell read by name; a function, globals.
_READS = ("LOAD_GLOBAL", "LOAD_NAME")


def name_in(frame: FrameType | None, thing: object) -> str:
    """The variable of a frame that holds an object, or the attribute of its `self`; empty if there is none.

    Names that the code itself uses are asked, so that a global of the same value but another name is not preferred.
    """
    if frame is None:
        return ""
    code = frame.f_code
    with locals_of(frame) as values:
        owner = values.get("self")
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names):
            if values.get(name, frame.f_globals.get(name)) is thing:
                field = name not in values and kinds.fields_of(owner).get(name) is thing
                return f"self.{name}" if field and name not in _variables_of(code) else name
        fields = kinds.fields_of(owner) if owner is not None else {}
        return next((f"self.{name}" for name, value in fields.items() if value is thing and type(name) is str), "")


def outer_name(frame: FrameType, thing: object) -> str:
    """The notebook's own variable that is an object, for the `self` of a frame; empty if there is none."""
    own = (name for name, value in list(frame.f_globals.items()) if value is thing and type(name) is str)
    return next((name for name in own if not name.startswith("_")), "")


def from_outside(frame: FrameType | None, name: str) -> str:
    """`trainer.model` for `self.model` in a method of the notebook's `trainer`; empty for any other name."""
    if frame is None or not name.startswith("self."):
        return ""
    with locals_of(frame) as values:
        owner = outer_name(frame, values.get("self"))
    return f"{owner}.{name.removeprefix('self.')}" if owner else ""


@lru_cache(maxsize=512)
def _variables_of(code: CodeType) -> frozenset[str]:
    """The globals that code reads itself: its other names are attributes, such as the `opt` of `self.opt`."""
    return frozenset(one.argval for one in dis.get_instructions(code) if one.opname in _READS)


@lru_cache(maxsize=512)
def names_of(code: CodeType) -> frozenset[str]:
    """Globals, attributes and outer variables that code uses, with those of the functions inside it."""
    inner = (names_of(part) for part in code.co_consts if type(part) is CodeType)
    return frozenset((*code.co_names, *code.co_freevars)).union(*inner)
