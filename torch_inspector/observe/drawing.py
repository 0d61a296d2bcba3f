"""What the workers of a loader run: objects within a data set, and functions of the notebook that those call."""

from __future__ import annotations

from collections.abc import Iterator
from dis import get_instructions
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.utils.data import Dataset

from torch_inspector.observe import kinds
from torch_inspector.observe.naming import names_of

# Fields of one object, parts of a list, objects in one data set, functions that call each other.
_FIELDS, _LISTED, _HOLDERS, _FUNCTIONS = 64, 16, 64, 64
_ENTRIES = frozenset(["__getitem__", "__getitems__", "__iter__", "__next__", "__call__", "forward"])
# Only wrap what the user has made: `Subset(rows, …)`, `Compose([crop, noise])`.
_WRAPPERS = ("torch", "torchvision")


def holders_in(dataset: Any) -> list[tuple[str, Any]]:
    """A data set, and the objects and functions that it holds, each with its path; those in lists and wrappers too.

    Also what objects of the notebook's own classes hold that it has itself: `transformer.transforms[0]`.
    """
    found: list[tuple[str, Any]] = [("", dataset)]
    for path, holder in found:  # grows while it is read
        own = "." not in path and is_of_notebook(holder)
        if holder is dataset or _wraps(holder) or kinds.is_a(holder, Dataset) or own:
            held = [(f"{path}.{name}" if path else name, part) for name, part in _parts_of(holder)]
            found += held[: _HOLDERS - len(found)]
    return found


def is_of_notebook(holder: Any) -> bool:
    """True for an object of a class of the notebook that is no data set."""
    is_object = type(holder) is not FunctionType and not kinds.is_a(holder, Dataset)
    return is_object and kinds.module_of(type(holder)) == "__main__"


def _parts_of(holder: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(kinds.fields_of(holder).items())[:_FIELDS] if holder is not None else ():
        if type(name) is not str:
            continue
        listed = value[:_LISTED] if kinds.is_one_of(value, (list, tuple)) else ()
        for path, part in ((name, value), *((f"{name}[{place}]", one) for place, one in enumerate(listed))):
            if type(part) is FunctionType or (kinds.fields_of(part) and not kinds.is_a(part, torch.nn.Module)):
                yield path, part


def _wraps(holder: Any) -> bool:
    return kinds.module_of(type(holder)).partition(".")[0] in _WRAPPERS


def with_called(running: list[FunctionType]) -> list[FunctionType]:
    """Methods of an object, or one function, and what those of them call that workers surely run."""
    found = _entered(running) if len(running) > 1 else list(running)
    for function in found:  # grows while it is read
        called = [thing for _, thing in globals_read(function) if type(thing) is FunctionType]
        fresh = [one for one in called if one.__module__ == "__main__" and all(one is not other for other in found)]
        found += fresh[: _FUNCTIONS - len(found)]
    return [*running, *(one for one in found if all(one is not other for other in running))]


def _entered(methods: list[FunctionType]) -> list[FunctionType]:
    """Methods that Python calls for a sample or a batch, and those that they name."""
    found = [one for one in methods if one.__name__ in _ENTRIES]
    for method in found:  # grows while it is read
        named = names_of(method.__code__)
        found += [one for one in methods if one.__name__ in named and all(one is not other for other in found)]
    return found


def globals_read(function: FunctionType) -> list[tuple[str, Any]]:
    """Variables of the notebook that a function reads, with what they stand for now."""
    names = dict.fromkeys(_global_names(function.__code__))
    return [(name, value) for name in names if (value := dict.get(function.__globals__, name)) is not None]


def _global_names(code: CodeType) -> Iterator[str]:
    """No attributes of the same name."""
    yield from (str(one.argval) for one in get_instructions(code) if one.opname == "LOAD_GLOBAL")
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _global_names(part)
