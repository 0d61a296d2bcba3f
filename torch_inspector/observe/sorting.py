"""The sorts of the classes that a walk has met, so that C code can ask for those of many objects at once."""

from __future__ import annotations

from itertools import compress
from typing import Any

from torch_inspector.observe import sorts


class Sorting:
    """Classes by address: no metaclass is asked for its hash."""

    def __init__(self) -> None:
        self.known: dict[int, str] = dict.fromkeys(sorts.ATOMS, "skip")
        self.things: set[int] = set()
        """Those of tensors, modules and optimizers."""
        self._skip = set(sorts.ATOMS)
        self._deep: set[int] = set()

    def of(self, value: Any) -> str:
        """The sort of an object."""
        return self.known.get(id(type(value))) or self._learn(type(value))

    def kinds_of(self, parts: list[Any]) -> set[int]:
        """Identities of the types among some objects, those left out that lead nowhere."""
        kinds = set(map(id, map(type, parts)))
        if not kinds <= self._skip:
            for kind in map(type, parts):
                if id(kind) not in self.known:
                    self._learn(kind)
        return kinds - self._skip

    def deep_places(self, parts: list[Any]) -> list[int]:
        """Places of what can be looked into."""
        return list(compress(range(len(parts)), map(self._deep.__contains__, map(id, map(type, parts)))))

    def _learn(self, kind: type[Any]) -> str:
        sort = self.known[id(kind)] = sorts.sort_of(kind)
        if sort == "skip":
            self._skip.add(id(kind))
        if sort in ("tensor", "module", "optimizer"):
            self.things.add(id(kind))
        if sort not in ("skip", "tensor", "optimizer"):
            self._deep.add(id(kind))
        return sort
