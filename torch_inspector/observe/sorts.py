"""What sort of thing an object is to somebody who looks into it, and its elements. Runs no code of the user."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils.data import TensorDataset

from torch_inspector.observe import kinds

BOUND = (MethodType, BuiltinFunctionType)
# Exact types that lead to no tensor which a variable could be said to hold.
_BARREN = (
    *(int, float, complex, bool, str, bytes, bytearray, type(None), type, range, slice, object, type(...)),
    *(torch.Size, torch.dtype, torch.device, FunctionType, BuiltinFunctionType, MethodType, ModuleType),
)
ATOMS = frozenset(map(id, _BARREN))
_SORTS: tuple[tuple[type[Any], str], ...] = (
    (type, "skip"),
    (torch.Tensor, "tensor"),
    (torch.nn.Module, "module"),
    (torch.optim.Optimizer, "optimizer"),
    (dict, "mapping"),
    (list, "list"),
    (tuple, "tuple"),
    (deque, "deque"),
    (set, "set"),
    (frozenset, "frozenset"),
    (SimpleNamespace, "object"),
    (TensorDataset, "object"),
)
_MODULE_PARTS = ("_parameters", "_buffers", "_modules")


def sort_of(kind: type[Any]) -> str:
    """What to do with objects of exactly this type.

    Classes are told apart by identity, as a metaclass can define `==`.
    """
    bases = set(map(id, kinds.mro_of(kind)))
    for base, sort in _SORTS:
        if id(base) in bases:
            return sort
    return "object" if module_of(kind) == "__main__" else "skip"


def module_of(kind: type[Any]) -> str:
    """Name of the Python module that a class says it comes from; empty if it says nothing."""
    try:
        return kinds.module_of(kind)
    except AttributeError:
        return ""


_FIRST: dict[str, Callable[[Any, int], list[Any]]] = {
    "mapping": lambda value, limit: list(islice(dict.values(value), limit)),
    "list": lambda value, limit: list.__getitem__(value, slice(0, limit)),
    "tuple": lambda value, limit: list(tuple.__getitem__(value, slice(0, limit))),
    "deque": lambda value, limit: list(islice(deque.__iter__(value), limit)),
    "set": lambda value, limit: list(islice(set.__iter__(value), limit)),
    "frozenset": lambda value, limit: list(islice(frozenset.__iter__(value), limit)),
    # Reading `__dict__` of an instance would make that dictionary, for good.
    "object": lambda value, limit: gc.get_referents(value)[:limit],
    "module": lambda value, limit: _module_entries(value, limit)[1],
}
_LENGTHS: dict[str, Callable[[Any], int]] = {
    "mapping": dict.__len__,
    "list": list.__len__,
    "tuple": tuple.__len__,
    "deque": deque.__len__,
    "set": set.__len__,
    "frozenset": frozenset.__len__,
}


def elements(sort: str, value: Any, limit: int) -> list[Any]:
    """The first elements of a container that another thread may be changing, or what an object refers to."""
    try:
        return _FIRST[sort](value, limit)
    except RuntimeError:
        return []


def samples(containers: Iterable[tuple[str, Any]], in_lists: int, in_others: int) -> list[Any]:
    """The first elements of several containers, given with their sorts, in one list."""
    found: list[Any] = []
    for sort, value in containers:
        try:
            found += _FIRST[sort](value, in_lists if sort == "list" else in_others)
        except RuntimeError:
            continue
    return found


def entries(sort: str, value: Any, limit: int) -> tuple[list[Any], list[Any]]:
    """Keys and values of a dictionary, names and attributes of a module without what it has registered."""
    if sort == "module":
        return _module_entries(value, limit)
    try:
        items = list(islice(dict.items(value), limit))
    except RuntimeError:
        return [], []
    return [key for key, _ in items], [part for _, part in items]


def length(sort: str, value: Any) -> int:
    """How many elements a container has; 0 for objects and modules."""
    measure = _LENGTHS.get(sort)
    return measure(value) if measure is not None else 0


def _module_entries(module: Any, limit: int) -> tuple[list[Any], list[Any]]:
    keys, parts = entries("mapping", kinds.fields_of(module), limit)
    own = [place for place, key in enumerate(keys) if type(key) is str and key not in _MODULE_PARTS]
    return [keys[place] for place in own], [parts[place] for place in own]
