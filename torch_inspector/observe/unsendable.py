"""What a loader would have to send to workers that start empty, and that they cannot find there."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
from types import FunctionType
from typing import Any

from torch_inspector.observe import kinds

_EMPTY_STARTS = ("spawn", "forkserver")
_SETTINGS = ("dataset", "collate_fn", "worker_init_fn")
# Objects that are looked into, and fields of each.
_OBJECTS, _FIELDS = 100, 64


def start_method(loader: Any) -> str:
    """How the workers of a loader begin: `fork`, `spawn`, `forkserver`; empty if nobody has said so yet."""
    context = kinds.fields_of(loader).get("_DataLoader__multiprocessing_context")
    if context is None:
        return multiprocessing.get_start_method(allow_none=True) or ""
    known = kinds.is_a(context, multiprocessing.context.BaseContext)
    name = kinds.setting_of(context, "_name") if known else None
    return name if type(name) is str else ""


def unsendable(loader: Any) -> tuple[str, ...]:
    """Classes and functions of the notebook among what the workers of a loader need; empty where they are copies."""
    settings = kinds.fields_of(loader)
    if not settings.get("num_workers") or start_method(loader) not in _EMPTY_STARTS:
        return ()
    found: dict[str, None] = {}
    stack = [settings[name] for name in reversed(_SETTINGS) if settings.get(name) is not None]
    seen = set[int]()
    while stack and len(seen) < _OBJECTS:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if name := _only_here(thing):
            found[name] = None
        stack.extend(_parts_of(thing))
    return tuple(found)


def _parts_of(thing: Any) -> list[Any]:
    if kinds.is_one_of(thing, (list, tuple)):
        return [one for one in thing[:_FIELDS] if _may_hold(one)]
    if type(thing) is FunctionType:
        return []
    return [one for one in list(kinds.fields_of(thing).values())[:_FIELDS] if _may_hold(one)]


def _may_hold(thing: Any) -> bool:
    return (
        kinds.is_one_of(thing, (list, tuple, FunctionType)) or bool(kinds.fields_of(thing)) or bool(_only_here(thing))
    )


def _only_here(thing: Any) -> str:
    """Name of a function without one that can be imported, or of a class of the notebook; empty for all else."""
    if type(thing) is FunctionType:
        name = thing.__qualname__
        module = thing.__module__
        return name if (type(module) is str and module == "__main__") or "<" in name else ""
    return kinds.class_name(thing) if kinds.module_of(type(thing)) == "__main__" else ""
