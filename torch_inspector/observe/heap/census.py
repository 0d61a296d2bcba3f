"""Finds every tensor and storage on the heap of Python, in one pass of C."""

from __future__ import annotations

import gc
import sys
from itertools import compress
from typing import Any

import torch

from torch_inspector.observe import kinds, private

_COMMON = (torch.Tensor, torch.nn.Parameter)
# Other classes of torch that had no instance at the last look, by address, with how often each was referred to then.
_without: dict[int, int] = {}


def tensors_of_heap() -> list[Any]:
    """Every tensor and storage that the garbage collector knows, that is, all that Python has seen.

    An instance of a class that Python has made refers to its class, and who refers to a class is found by C in one
    pass. Asking each object of the heap for its type takes three times as long.
    """
    wanted = _kinds()
    # The pass takes the longer the more classes are looked for, and of most of torch's own there is never an instance.
    counts = {address: sys.getrefcount(kind) for address, kind in wanted.items() if _is_rare(kind)}
    absent = {address for address, count in counts.items() if _without.get(address) == count}
    looked_for = [kind for address, kind in wanted.items() if address not in absent]
    objects = gc.get_referrers(*looked_for) if private.tells_its_class() else _asked(wanted)
    found = _only(wanted, objects)
    if len(absent) < len(counts):
        _note_absent(counts, set(map(id, map(type, found))))
    return found


def _asked(wanted: dict[int, type[Any]]) -> list[Any]:
    objects = gc.get_objects()
    return list(compress(objects, map(wanted.__contains__, map(id, map(type, objects)))))


def _only(wanted: dict[int, type[Any]], objects: list[Any]) -> list[Any]:
    """The objects of some classes, in the very list: a second one of a hundred thousand costs a tenth of the pass."""
    tensor = torch.Tensor
    # Most of what is found, and told apart for a third of what any other class costs.
    others = [place for place, thing in enumerate(objects) if type(thing) is not tensor]
    for place in reversed(others):
        if id(type(objects[place])) not in wanted:
            objects[place] = objects[-1]
            objects.pop()
    return objects


def _is_rare(kind: type[Any]) -> bool:
    return not any(kind is one for one in _COMMON) and kinds.module_of(kind).partition(".")[0] == "torch"


def _note_absent(counts: dict[int, int], present: set[int]) -> None:
    """Notes which classes have no instance: one would refer to its class once more."""
    _without.clear()
    _without.update((address, count) for address, count in counts.items() if address not in present)


def _kinds() -> dict[int, type[Any]]:
    """The classes of tensors and storages, by address: no metaclass is asked for its hash."""
    wanted: dict[int, type[Any]] = {}
    stack: list[type[Any]] = [torch.Tensor, torch.UntypedStorage]
    while stack:
        kind = stack.pop()
        if id(kind) not in wanted:
            wanted[id(kind)] = kind
            stack += type.__subclasses__(kind)
    return wanted
