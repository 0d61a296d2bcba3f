"""How many tensors a container has been given, one call after the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_inspector.observe import as_torch, sorts
from torch_inspector.observe.paths import attributes_of
from torch_inspector.observe.reach import storages_behind

# Elements that are looked at in one container, and containers in containers.
_ELEMENTS, _DEPTH = 1_000, 4
_LISTS = ("list", "deque", "set", "frozenset")


@dataclass
class Pile:
    """What a container holds. Plain numbers only."""

    entries: int = 0
    """Elements that hold memory of their own, what was given in one tuple counted once."""
    storages: dict[int, int] = field(default_factory=dict)
    firsts: list[int] = field(default_factory=list)
    """One storage of each entry."""
    has_history: bool = False


def pile_of(value: Any, *, lists: bool) -> Pile:
    """The pile in a container.

    Args:
        value: A list, dictionary or object.
        lists: False to count entries of dictionaries only: the lists in them are put there whole.
    """
    pile = Pile()
    _look(value, pile, _DEPTH, lists=lists)
    return pile


def _look(value: Any, pile: Pile, depth: int, *, lists: bool) -> None:
    sort = sorts.sort_of(type(value))
    if not depth or _is_bounded(sort, value):
        return
    if sort in _LISTS or sort == "mapping":
        for element in sorts.elements(sort, value, _ELEMENTS):
            inner = sorts.sort_of(type(element))
            if inner in _LISTS or inner in ("mapping", "object"):
                _look(element, pile, depth - 1, lists=lists)
            elif lists or sort == "mapping":
                _add(_tensors(element, inner), pile)
    elif sort == "object" and lists:
        _add([t for _, part in attributes_of(value) for t in _tensors(part, sorts.sort_of(type(part)))], pile)


def _is_bounded(sort: str, value: Any) -> bool:
    """True for a deque that drops its oldest element by itself."""
    return sort == "deque" and deque.maxlen.__get__(value) is not None


def _tensors(value: Any, sort: str) -> list[torch.Tensor]:
    """A tensor, or those in a tuple."""
    if sort == "tensor":
        return [value]
    if sort != "tuple":
        return []
    parts = sorts.elements(sort, value, _ELEMENTS)
    return [tensor for part in parts for tensor in _tensors(part, sorts.sort_of(type(part)))]


def _add(tensors: list[torch.Tensor], pile: Pile) -> None:
    found = dict(storage for tensor in tensors for storage in storages_behind(tensor, gradients=False))
    new = found.keys() - pile.storages.keys()
    if new:
        pile.entries += 1
        pile.firsts.append(min(new))
        pile.storages.update(found)
        pile.has_history = pile.has_history or any(as_torch.requires_grad(tensor) for tensor in tensors)
