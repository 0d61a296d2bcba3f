"""A place in the user's variables that a walk looks into."""

from __future__ import annotations

from typing import Any

from torch_inspector.observe import kinds
from torch_inspector.observe.paths import key_text, name_of_part, path_of_attribute


class Spot:
    """An object that is looked into, and how it was reached."""

    __slots__ = ("_path", "barren", "depth", "fruitful", "key", "parent", "sort", "value")

    def __init__(self, value: Any, sort: str, parent: Spot | None, key: Any, depth: int) -> None:
        self.value, self.sort, self.parent, self.key, self.depth = value, sort, parent, key, depth
        self.fruitful = False
        self._path = ""
        self.barren: list[int] = [0] if parent is None else parent.barren

    def path(self) -> str:
        """How to type it."""
        if not self._path:
            self._path = self.parent.path_of(self.key, self.value) if self.parent is not None else str(self.key)
        return self._path

    def path_of(self, key: Any, part: Any) -> str:
        """How to type one of its parts."""
        if self.sort in ("list", "tuple"):  # by far the most
            return f"{self.path()}[{key}]"
        if self.sort == "object":
            name = name_of_part(self.value, part)
            return self.path() if name == "" else path_of_attribute(self.path(), name or "…")
        if self.sort == "module" or self.holds_attributes():
            whose = self if self.sort == "module" or self.parent is None else self.parent
            return path_of_attribute(whose.path(), key) if type(key) is str else f"{whose.path()}.…"
        if self.sort in ("set", "frozenset"):
            return f"{self.path()} (an element)"
        return f"{self.path()}[{key_text(key)}]"

    def holds_attributes(self) -> bool:
        """True for the instance dictionary of an object."""
        owner = self.parent
        return owner is not None and owner.sort == "object" and name_of_part(owner.value, self.value) == ""

    def list_of_records(self) -> str:
        """Path of the list or deque of plain records in which this is one, or the object whose fields these are."""
        fields = self.sort == "mapping" and self.parent is not None and self.parent.sort == "object"
        one = self.parent if fields else self
        if one is None or one.sort != "object" or one.parent is None or one.parent.sort not in ("list", "deque"):
            return ""
        return one.parent.path() if kinds.is_record(type(one.value)) else ""

    def around(self) -> list[Spot]:
        """The spot, what it is in, and so on, up to that of a variable."""
        spots = [self]
        while (parent := spots[-1].parent) is not None:
            spots.append(parent)
        return spots

    def note_found(self) -> None:
        """Something was found below: what was put off there is worth a look."""
        spot: Spot | None = self
        while spot is not None and not spot.fruitful:
            spot.fruitful = True
            spot = spot.parent
