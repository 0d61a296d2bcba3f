"""Numbers that stand for live modules and optimizers.

Not for tensors: `torch.utils.swap_tensors` refuses a tensor that has a weak reference, so none is ever made to one.
"""

from __future__ import annotations

import weakref
from itertools import count
from typing import Any


class Keys:
    """Gives each object a number of its own, never used again, without keeping the object alive."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}

    def of(self, thing: object) -> int:
        """The number of a module or optimizer; a new one when it is first seen."""
        address = id(thing)
        known = self._known.get(address)
        if known is not None and known[0]() is thing:
            return known[1]
        number = next(self._numbers)
        self._known[address] = (weakref.ref(thing, lambda ref: self._forget(address, ref)), number)
        return number

    def known(self, thing: object) -> int:
        """The number of an object that has one; 0 for any other."""
        known = self._known.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else 0

    def live(self, number: int) -> Any:
        """The object behind a number, or None if it is gone."""
        return next((ref() for ref, known in list(self._known.values()) if known == number), None)

    def _forget(self, address: int, ref: weakref.ref[Any]) -> None:
        known = self._known.get(address)
        if known is not None and known[0] is ref:
            del self._known[address]
