"""How the user would type what was found: `history['loss'][3]`, `trainer.model`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from keyword import iskeyword
from types import MemberDescriptorType
from typing import Any

from torch_inspector.observe import kinds

_KEY_LENGTH = 60
# Longer numbers are no names; above 4,300 digits Python refuses to write them.
_KEY_BITS = 200
_ATTRIBUTES = 1_000


def path_of_name(name: object) -> str:
    """How to type a global variable."""
    if type(name) is str and name.isidentifier() and not iskeyword(name):
        return name
    return f"globals()[{key_text(name)}]"


def path_of_attribute(path: str, name: str) -> str:
    """How to type an attribute."""
    if name.isidentifier() and not iskeyword(name):
        return f"{path}.{name}"
    return f"vars({path})[{key_text(name)}]"


def key_text(key: object) -> str:
    """A dictionary key as the user would type it; only plain keys are shown, and long ones cut."""
    if type(key) is str:
        return repr(key if len(key) <= _KEY_LENGTH else key[:_KEY_LENGTH] + "…")
    if type(key) is int and key.bit_length() > _KEY_BITS:
        return "…"
    if type(key) is float and (key != key or key in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return f"float('{key}')"
    return repr(key) if kinds.is_one_of(key, (int, bool, float, type(None))) else "…"


def attributes_of(thing: Any) -> list[tuple[str, Any]]:
    """Entries of the instance dictionary and slots of the user's classes, past any access that the class defines."""
    try:
        fields = list(islice(dict.items(kinds.fields_of(thing)), _ATTRIBUTES))
    except RuntimeError:
        fields = []
    return [(name, part) for name, part in fields if type(name) is str] + list(_slots_of(thing))


def _slots_of(thing: Any) -> Iterator[tuple[str, Any]]:
    for base in kinds.mro_of(type(thing)):
        own = kinds.class_fields(base)
        if own.get("__module__") != "__main__":
            continue
        for name, entry in own.items():
            if type(entry) is MemberDescriptorType and name not in ("__dict__", "__weakref__"):
                try:
                    yield name, entry.__get__(thing)
                except AttributeError:  # not set
                    continue


def name_of_part(thing: Any, part: Any) -> str | None:
    """Name of the attribute that is this very object; empty for the instance dictionary itself, None if none is."""
    if kinds.fields_of(thing) is part:
        return ""
    return next((name for name, one in attributes_of(thing) if one is part), None)
