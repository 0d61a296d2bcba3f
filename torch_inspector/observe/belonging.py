"""Whether a value of the user may have to do with a model: its memory, a container or an object that has some of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


class Belonging:
    """Tells of names whether what they stand for has memory of a model; each is looked at once.

    Args:
        variables: The user's variables.
        owned: Addresses of the memory of the model.
    """

    def __init__(self, variables: Mapping[str, Any], owned: set[int]) -> None:
        self._variables, self._owned = variables, owned
        self._known: dict[str, tuple[Verdict, ...]] = {}

    def verdict(self, names: Iterable[str]) -> Verdict:
        """True if any of some names is the model's, False if all that tell anything are another's."""
        return _joined(one for name in names for one in self._of(name))

    def _of(self, name: str) -> tuple[Verdict, ...]:
        if name not in self._known:
            known = name in self._variables and not _says_nothing(self._variables[name])
            self._known[name] = (_one(self._variables[name], self._owned, deep=True),) if known else ()
        return self._known[name]


def _joined(found: Iterable[Verdict]) -> Verdict:
    verdicts = set(found)
    if True in verdicts:
        return True
    return False if verdicts == {False} else None


def _says_nothing(value: Any) -> bool:
    return kinds.is_one_of(value, _SAYS_NOTHING) or kinds.is_a(value, ModuleType) or kinds.is_a(value, type)


def _one(value: Any, owned: set[int], *, deep: bool) -> Verdict:
    if kinds.is_a(value, torch.Tensor):
        place = private.storage_of(value)
        return place is not None and place[0] in owned
    if kinds.is_a(value, torch.nn.Module):
        return not owned.isdisjoint(storages(value))
    entries = _entries_of(value) if deep else None
    if entries is None:
        return None
    return _joined(_one(one, owned, deep=False) for one in list(entries()) if not _says_nothing(one))


def _entries_of(value: Any) -> Callable[[], Iterable[Any]] | None:
    if kinds.is_one_of(value, _LISTS):
        return lambda: islice(value, _ENTRIES)
    fields = value if type(value) is dict else kinds.fields_of(value)
    return (lambda: islice(fields.values(), _ENTRIES)) if fields else None
