"""The object that a path leads to, found in plain storage only: no code runs, no expression is evaluated."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from torch_inspector.facts.typed_paths import steps_of
from torch_inspector.observe import kinds
from torch_inspector.observe.paths import key_text

_DICTS = (dict, defaultdict, OrderedDict)
_SEQUENCES = (list, tuple, deque)
_REGISTRIES = ("_modules", "_parameters", "_buffers")
_LAST = ("last_exc", "last_value", "last_traceback")
# Everything in a notebook leads to these; they hold no memory of the user's own.
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, CodeType)
_TENSORS = (torch.Tensor, torch.UntypedStorage)


class Followed(NamedTuple):
    """Where a path leads. Holds the user's object: drop it at once."""

    thing: Any = None
    found: bool = False
    """True if it leads to an object of which it makes sense to ask who holds it."""
    ends: bool = False
    """True if it surely leads nowhere: its variable is not there, or a plain container has no such entry."""


_UNKNOWN, _NOWHERE = Followed(), Followed(ends=True)


def followed(names: Mapping[Any, Any], path: str) -> Followed:
    """Follows a path through variables, plain containers and instance dictionaries.

    Args:
        names: The user's variables.
        path: As typed; it may come from outside, and is compared only.
    """
    steps = steps_of(path)
    try:
        return _UNKNOWN if steps is None else _follow(names, steps)
    except RuntimeError:  # changed meanwhile by another thread
        return _UNKNOWN


def _follow(names: Mapping[Any, Any], steps: tuple[str, ...]) -> Followed:
    if steps[0] == "sys" and steps[1:2] and steps[1][1:] in _LAST:
        # Whatever the user's own `sys` is, a path that we gave out means the module.
        here, steps = _entry(vars(sys).items(), steps[1][1:]), steps[1:]
    else:
        here = _entry(list(names.items()), steps[0])
        if here.ends and steps[0] in sys.modules:
            return _UNKNOWN
    for step in steps[1:]:
        if not here.found:
            return here
        here = _attribute(here.thing, step[1:]) if step[0] == "." else _element(here.thing, step[1:-1])
    return here if not here.found or _can_be_held(here.thing) else _UNKNOWN


def _entry(items: Iterable[tuple[Any, Any]], name: str) -> Followed:
    found = [value for key, value in list(items) if type(key) is str and key == name]
    return Followed(found[0], found=True) if found else _NOWHERE


def _attribute(thing: Any, name: str) -> Followed:
    """An entry of the instance dictionary, or what a module has registered: anything else may be computed."""
    fields = kinds.fields_of(thing)
    own = _entry(dict.items(fields), name)
    return own if own.found else _registered(thing, fields, name)


def _registered(thing: Any, fields: dict[str, Any], name: str) -> Followed:
    registries = (fields.get(one) for one in _REGISTRIES if kinds.is_a(thing, torch.nn.Module))
    found = (_entry(dict.items(one), name) for one in registries if kinds.is_registry(one))
    return next((one for one in found if one.found), _UNKNOWN)


def _element(thing: Any, key: str) -> Followed:
    if kinds.is_one_of(thing, _DICTS):
        # Only keys of plain types are written out, so that nothing of the user's is compared.
        found = [value for one, value in list(dict.items(thing)) if key_text(one) == key]
        return _NOWHERE if not found else Followed(found[0], found=True) if len(found) == 1 else _UNKNOWN
    if kinds.is_one_of(thing, _SEQUENCES) and key.isdecimal():
        parts, place = list(thing), int(key)
        return Followed(parts[place], found=True) if place < len(parts) else _NOWHERE
    return _registered(thing, kinds.fields_of(thing), key) if key.isdecimal() else _UNKNOWN


def _can_be_held(thing: Any) -> bool:
    """False for None, numbers, texts, Python modules, functions and classes: all and sundry refer to these."""
    if any(kinds.is_a(thing, one) for one in _TENSORS) or kinds.is_one_of(thing, (*_DICTS, list)):
        return True
    return gc.is_tracked(thing) and not any(kinds.is_a(thing, one) for one in _SHARED)
