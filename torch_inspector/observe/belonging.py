"""Whether a value of the user may have to do with a model: its memory, a container or an object that has some of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch

from torch_inspector.observe import kinds, private
from torch_inspector.observe.history import module_tensors

# Of a container or an object.
_ENTRIES = 200
# What says nothing about any model.
_SAYS_NOTHING = (int, float, bool, complex, str, bytes, range, type(None), type, FunctionType, BuiltinFunctionType)
_LISTS = (list, tuple, set, frozenset)

Verdict = bool | None
"""False for tensors and models that are others; None for what nobody knows."""


def storages(module: Any) -> set[int]:
    """Addresses of the parameters and buffers of a module."""
    return {found[0] for one in module_tensors(module) if (found := private.storage_of(one))}


def belonging(values: Iterable[Any], owned: set[int], *, deep: bool = True) -> Verdict:
    """True if any of some values has memory among the owned, False if all that tell anything have none.

    Args:
        values: What names of the user stand for.
        owned: Addresses of storages.
        deep: False for entries of a container, which are not looked into any further.
    """
    found = [_one(value, owned, deep=deep) for value in islice(values, _ENTRIES) if not _says_nothing(value)]
    if True in found:
        return True
    return None if not found or None in found else False


def _says_nothing(value: Any) -> bool:
    return kinds.is_one_of(value, _SAYS_NOTHING) or kinds.is_a(value, ModuleType) or kinds.is_a(value, type)


def _one(value: Any, owned: set[int], *, deep: bool) -> Verdict:
    if kinds.is_a(value, torch.Tensor):
        place = private.storage_of(value)
        return place is not None and place[0] in owned
    if kinds.is_a(value, torch.nn.Module):
        return not owned.isdisjoint(storages(value))
    entries = _entries_of(value) if deep else None
    return belonging(list(entries()), owned, deep=False) if entries is not None else None


def _entries_of(value: Any) -> Callable[[], Iterable[Any]] | None:
    if kinds.is_one_of(value, _LISTS):
        return lambda: islice(value, _ENTRIES)
    fields = value if type(value) is dict else kinds.fields_of(value)
    return fields.values if fields else None
