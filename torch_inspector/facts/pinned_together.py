"""Views in one collection that each keep a storage alive: what they are together, and how all of them are copied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from torch_inspector.facts.tensors import PinFact

_LAST = re.compile(r"\[[^\[\]]*\]$")
# `tracks[3].emb` and `rows[3]['emb']`: a field in each element of a collection.
_FIELD = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]((?:\.\w+|\['[^\[\]']*'\])+)")
_NAMED = 2
# Keys that are written out.
_KEYS = 8


class Together(NamedTuple):
    """Storages of one variable, of one container, or of one field of the elements of a container."""

    owner: str
    field: str
    pins: list[PinFact]

    @property
    def paths(self) -> list[str]:
        """The views."""
        return [path for pin in self.pins for path in pin.paths]

    @property
    def subject(self) -> str:
        """The view, if it is one, or what holds all."""
        return self.paths[0] if len(self.paths) == 1 else self.owner

    @property
    def named(self) -> str:
        """The views in words, up to `that show`."""
        paths, count = self.paths, self.pins[0].tensor_count
        if len(paths) == 1:
            return f"`{paths[0]}` is a view that shows"
        if len(paths) <= _NAMED:
            return f"`{paths[0]}` and `{paths[1]}` are views that show"
        if self.field:
            return f"{len(paths)} views in `{self.owner}` (`{self.field}` of its elements) show"
        if count > len(paths):  # what a variable shows of another storage, too, is not pinned by its view
            return f"{len(paths)} of the {count} tensors in `{self.owner}` are views that show"
        return f"{len(paths)} views in `{self.owner}` show"

    @property
    def copied(self) -> str:
        """The statement that copies what they show."""
        owner, pin = self.owner, self.pins[0]
        if len(self.paths) <= _NAMED:
            return "; ".join(f"{path} = {path}.clone()" for path in self.paths)
        if self.field or not pin.only_tensors:
            return self._copied_by_key()
        if pin.mapping:
            return f"{owner} = {{key: view.clone() for key, view in {owner}.items()}}"
        return f"{owner} = [view.clone() for view in {owner}]"

    def _copied_by_key(self) -> str:
        keys = [path.removeprefix(f"{self.owner}[").removesuffix(f"]{self.field}") for path in self.paths]
        every = ", ".join(keys) if len(keys) <= _KEYS else ""
        if keys == [str(number) for number in range(len(keys))]:
            source = f"range({len(keys)})"
        elif every and "…" not in every:
            source = f"({every})"
        else:
            return f"call .clone() on each view before {self.owner} keeps it"
        one = f"{self.owner}[key]{self.field}"
        return f"for key in {source}:\n    {one} = {one}.clone()"


def together(pins: Iterable[PinFact]) -> list[Together]:
    """Storages by what holds their views."""
    groups: dict[tuple[str, str], Together] = {}
    for pin in pins:
        owner, field = _place(pin.paths[0])
        groups.setdefault((owner, field), Together(owner, field, [])).pins.append(pin)
    return list(groups.values())


def _place(path: str) -> tuple[str, str]:
    """The container and the field of its elements; the container of an element; or the variable itself."""
    found = _FIELD.fullmatch(path)
    return (found[1], found[3]) if found is not None else (_LAST.sub("", path), "")
