"""Walks the user's variables: tensors, modules and optimizers with paths that the user can type.

Made for heaps with millions of objects: C code asks for the types of a sample, a container whose sample is barren costs
two microseconds, and paths are put together only for what was found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from time import thread_time
from typing import Any

import torch

from torch_inspector.observe import kinds, sorts
from torch_inspector.observe.paths import attributes_of, key_text, path_of_name
from torch_inspector.observe.scouts import barren_below
from torch_inspector.observe.sorting import Sorting
from torch_inspector.observe.spot import Spot

__all__ = ["ELEMENTS", "Group", "Names", "attributes_of", "hidden", "key_text", "walk_names", "walk_paths"]

# Containers in containers that are looked into.
_DEPTH = 4
# Elements of one container that are looked at.
ELEMENTS = 1_000
# The same for a sampling walk until a tensor is found among them: by depth, from what a variable holds directly.
_SAMPLES = (256, 64, 16, 16)
# Elements of a list that is longer than this sample: a million alike need fewer, and each is far away in memory.
_SAMPLE_OF_LONG = 64
# Containers in one container that a sampling walk looks into until something is found in one of them.
_SCOUTS = (18, 6, 3, 3)
# Barren containers that a sampling walk looks into: below one variable, and in all. About 2 µs each.
_BARREN_EACH, _BARREN = 64, 400
_CLOCK_EVERY = 16
_HISTORY = re.compile(r"_(\d+|i\d*|ii|iii|oh|ih|dh|__?)?$")
_IPYTHONS = frozenset(("In", "Out", "exit", "quit", "get_ipython", "open"))


@dataclass
class Group:
    """The tensors that one container holds directly."""

    path: str
    container: Any
    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    element: str = ""
    """Where it is in a list of many like it, if a variable leads there on a shorter way, as to the last of them."""


@dataclass
class Names:
    """What a walk found. Holds the user's objects: drop it at once."""

    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    modules: list[tuple[str, Any]] = field(default_factory=list)
    optimizers: list[tuple[str, Any]] = field(default_factory=list)
    groups: dict[int, Group] = field(default_factory=dict)
    complete: bool = True
    """False if the time was over, or a container of tensors was longer than is looked at."""
    records: dict[int, str] = field(default_factory=dict)
    """Lists and deques of plain records, by the tensors in a field of these."""
    of_variables: list[Group] = field(default_factory=list)
    """Elements of lists that are variables and hold nothing but variables: they count for their lists only."""


def hidden(name: object) -> bool:
    """True for names that IPython keeps for itself."""
    return type(name) is not str or (name[:1] == "_" and _is_history(name)) or name in _IPYTHONS


# Long notebooks have thousands of such names, the same after every cell.
@lru_cache(maxsize=8_192)
def _is_history(name: str) -> bool:
    return _HISTORY.match(name) is not None


def walk_names(names: Iterable[tuple[Any, Any]], deadline: float, *, sampling: bool = False) -> Names:
    """Finds what a set of variables leads to, breadth first, so that short paths win.

    Args:
        names: Names and values.
        deadline: `thread_time()` time at which to stop.
        sampling: True for a walk that looks into samples, False for one that looks into everything.
    """
    return _Search(deadline, path_of_name, sampling=sampling).run(names)


def walk_paths(paths: Iterable[tuple[str, Any]], deadline: float) -> Names:
    """The same for objects that have a path already; looks into everything."""
    return _Search(deadline, str, sampling=False).run(paths)


class _Search:
    """One walk."""

    def __init__(self, deadline: float, root_path: Callable[[Any], str], *, sampling: bool) -> None:
        self._deadline, self._root_path, self._sampling = deadline, root_path, sampling
        self._sorting = Sorting()
        self._plain: set[int] = set()
        self._seen: set[int] = set()
        self._entered: set[int] = set()
        self._variables: set[int] = set()
        self._listed: dict[int, Spot] = {}
        self._named_fields: dict[int, str] = {}
        self._put_off: list[Spot] = []
        self._groups: list[tuple[Spot, bool, Group]] = []
        self._count = self._barren = 0
        self._over = False
        self.found = Names()

    def run(self, roots: Iterable[tuple[Any, Any]]) -> Names:
        """Looks at all roots, then at what is in them, and so on."""
        level = self._roots(roots)
        while level and not self._over:
            following: list[Spot] = []
            for spot in level:
                if self._stop():
                    break
                self._look(spot, following)
            level = following or self._resume()
        self._keep_groups()
        self._keep_records()
        return self.found

    def _keep_groups(self) -> None:
        """A container of variables only is known by their names, but not the last of a list of such containers."""
        among = {id(spot.parent) for spot, own, _ in self._groups if own and spot.parent is not None}
        lists = Counter(id(one) for spot, _, _ in self._groups if self._listed for one in spot.around())
        for spot, own, group in self._groups:
            root = spot.around()[-1] if self._listed else spot
            listed = self._listed.get(id(root.value))
            one_of_many = listed is not None and lists[id(listed.parent)] > 1
            if listed is not None and one_of_many:
                group.element = listed.path() + group.path.removeprefix(root.path())
            if own or id(spot.parent) in among:
                self.found.groups[id(group.container)] = group
            elif one_of_many:
                self.found.of_variables.append(group)

    def _keep_records(self) -> None:
        """A variable that is one of many records, or a field of one, counts for their list."""
        lists = set(self.found.records.values())
        for spot in self._listed.values() if lists else ():
            whole = spot.list_of_records()
            fields = (part for part in kinds.fields_of(spot.value).values() if whole in lists)
            self._named_fields.update((id(one), whole) for one in fields if self._is_tensor(one))
        own = {key: whole for key, whole in self._named_fields.items() if whole in lists}
        self.found.records = own | self.found.records

    def _is_tensor(self, part: Any) -> bool:
        return self._sorting.known.get(id(type(part))) == "tensor"

    def _stop(self) -> bool:
        if self._count % _CLOCK_EVERY == 0 and (
            thread_time() > self._deadline or (self._sampling and self._barren > _BARREN)
        ):
            self._over, self.found.complete = True, False
        self._count += 1
        return self._over

    def _roots(self, roots: Iterable[tuple[Any, Any]]) -> list[Spot]:
        level: list[Spot] = []
        for name, value in roots:
            sort = self._sorting.of(value)
            if sort == "skip" or id(value) in self._entered:
                continue
            if self._stop():
                break
            spot = Spot(value, sort, None, self._root_path(name), 0)
            if id(type(value)) in self._sorting.things:
                self._plain.add(id(value))
                self._note(spot.path(), value, sort)
            if sort not in ("tensor", "optimizer"):
                self._entered.add(id(value))
                self._variables.add(id(value))
                level.append(spot)
        return level

    def _look(self, spot: Spot, following: list[Spot]) -> None:
        wanted = spot.parent is not None and spot.parent.fruitful
        if self._sampling and spot.barren[0] > _BARREN_EACH and not wanted:
            return
        keys, sample = self._sample(spot)
        kinds = self._sorting.kinds_of(sample)
        if not wanted and not kinds & self._sorting.things:
            spot.barren[0] += 1
            self._barren += 1
        if not kinds:
            return
        whole = bool(kinds & self._sorting.things) or spot.sort == "module"
        parts = sample
        if (whole and self._sampling) or spot.sort == "module":
            keys, parts = self._whole(spot)
        elif spot.sort == "mapping":
            keys, parts = sorts.entries(spot.sort, spot.value, len(sample))
        if kinds & self._sorting.things:
            self._take(spot, parts, keys)
        self._look_deeper(spot, parts, keys, following)

    def _sample(self, spot: Spot) -> tuple[list[int] | None, list[Any]]:
        """Some elements of a container, of a long list also the last; their places, if they are not the first ones."""
        count = _SAMPLES[spot.depth] if self._sampling else ELEMENTS
        if not self._sampling or (length := sorts.length(spot.sort, spot.value)) <= count:
            return None, sorts.elements(spot.sort, spot.value, count)
        count = min(count, _SAMPLE_OF_LONG)
        if spot.sort != "list":
            return None, sorts.elements(spot.sort, spot.value, count)
        last = count // 8
        first, end = count - last, length - last
        parts = list.__getitem__(spot.value, slice(first))
        parts += list.__getitem__(spot.value, slice(end, length))
        places = [*range(first), *range(end, length)]
        return (places, parts) if len(parts) == count else (None, parts[:first])

    def _whole(self, spot: Spot) -> tuple[list[Any] | None, list[Any]]:
        """Everything in a container that is looked at in any walk, with the keys where there are some."""
        if spot.sort in ("mapping", "module"):
            keys, parts = sorts.entries(spot.sort, spot.value, ELEMENTS)
        else:
            keys, parts = None, sorts.elements(spot.sort, spot.value, ELEMENTS)
        self._sorting.kinds_of(parts)
        return keys, parts

    def _take(self, spot: Spot, parts: list[Any], keys: list[Any] | None) -> None:
        """Notes the tensors, modules and optimizers in a container, and the tensors as a group."""
        group: dict[int, tuple[str, torch.Tensor]] = {}
        own = fresh = False
        things, seen, known = self._sorting.things, self._seen, self._sorting.known
        for place, part in enumerate(parts):
            kind = id(type(part))
            if kind not in things:
                continue
            new, sort = id(part) not in seen, known[kind]
            if new or sort == "tensor":
                path = spot.path_of(place if keys is None else keys[place], part)
                if new:
                    self._note(path, part, sort)
                    spot.note_found()
                if sort == "tensor":
                    if listed := spot.list_of_records():
                        (self.found.records if new else self._named_fields)[id(part)] = listed
                    own, fresh = own or new, fresh or new or id(part) in self._plain
                    group[id(part)] = (path, part)
        if fresh and spot.sort not in ("object", "module") and not spot.holds_attributes():
            self._groups.append((spot, own, Group(spot.path(), spot.value, list(group.values()))))
        if sorts.length(spot.sort, spot.value) > ELEMENTS:
            self.found.complete = False

    def _note(self, path: str, thing: Any, sort: str) -> None:
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        found: list[tuple[str, Any]] = getattr(self.found, f"{sort}s")
        found.append((path, thing))

    def _look_deeper(self, spot: Spot, parts: list[Any], keys: list[Any] | None, following: list[Spot]) -> None:
        places = self._sorting.deep_places(parts)
        count = _SCOUTS[spot.depth] if self._sampling and spot.sort not in ("object", "module") else ELEMENTS
        if len(places) > count:
            # Two thirds from the front, the others from the end, where a running program appends.
            start, end = count - count // 3, len(places) - count // 3
            self._put_off.append(spot)
            places = places[:start] + places[end:]
        if self._sampling and not spot.fruitful:
            asked = barren_below([parts[place] for place in places], spot.depth + 1, _SAMPLES, self._sorting)
            self._barren += asked
            if asked:
                return
        self._enter(spot, parts, keys, places, following)

    def _enter(
        self, spot: Spot, parts: list[Any], keys: list[Any] | None, places: list[int], following: list[Spot]
    ) -> None:
        for place in places:
            part = parts[place]
            sort = self._sorting.known[id(type(part))]
            # What a dictionary of an object holds is what the object holds.
            depth = spot.depth if spot.sort == "object" and sort == "mapping" else spot.depth + 1
            if id(part) in self._variables and spot.sort in ("list", "tuple", "deque"):
                self._listed[id(part)] = Spot(part, sort, spot, place if keys is None else keys[place], depth)
            if depth < _DEPTH and id(part) not in self._entered:
                self._entered.add(id(part))
                following.append(Spot(part, sort, spot, place if keys is None else keys[place], depth))

    def _resume(self) -> list[Spot]:
        """What was put off, where a neighbour has led to something."""
        following: list[Spot] = []
        waiting, self._put_off = self._put_off, []
        for spot in waiting:
            if spot.fruitful:
                keys, parts = self._whole(spot)
                self._enter(spot, parts, keys, self._sorting.deep_places(parts), following)
            else:
                self._put_off.append(spot)
        return following
