"""Walks the user's variables: tensors, modules and optimizers with paths that the user can type.

Made for heaps with millions of objects: C code asks for the types of a sample, a container whose sample is barren costs
two microseconds, and paths are put together only for what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from time import thread_time
from typing import Any

import torch

from torch_inspector.observe import sorts
from torch_inspector.observe.paths import attributes_of, key_text, path_of_name
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
# Containers of one depth that are asked together whether they are barren.
_AT_FRONT, _AT_END = 24, 12
_AT_ONCE = _AT_FRONT + _AT_END
# Elements of the lists among them: in all, and of one at least. Lists are of a kind where dictionaries are not.
_IN_LISTS, _IN_EACH_LIST = 256, 16
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
    """Lists of plain records, by the tensors in a field of these."""


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
        self._sorts: dict[int, str] = dict.fromkeys(sorts.ATOMS, "skip")
        self._skip = set(sorts.ATOMS)
        self._things: set[int] = set()
        self._deep: set[int] = set()
        self._plain: set[int] = set()
        self._seen: set[int] = set()
        self._entered: set[int] = set()
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
        return self.found

    def _keep_groups(self) -> None:
        """A container of variables only is known by their names, but not the last of a list of such containers."""
        among = {id(spot.parent) for spot, own, _ in self._groups if own and spot.parent is not None}
        for spot, own, group in self._groups:
            if own or id(spot.parent) in among:
                self.found.groups[id(group.container)] = group

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
            sort = self._sorts.get(id(type(value))) or self._learn(type(value))
            if sort == "skip" or id(value) in self._entered:
                continue
            if self._stop():
                break
            spot = Spot(value, sort, None, self._root_path(name), 0)
            if id(type(value)) in self._things:
                self._plain.add(id(value))
                self._note(spot.path(), value, sort)
            if sort not in ("tensor", "optimizer"):
                self._entered.add(id(value))
                level.append(spot)
        return level

    def _look(self, spot: Spot, following: list[Spot]) -> None:
        wanted = spot.parent is not None and spot.parent.fruitful
        if self._sampling and spot.barren[0] > _BARREN_EACH and not wanted:
            return
        keys, sample = self._sample(spot)
        kinds = self._kinds_of(sample)
        if not wanted and not kinds & self._things:
            spot.barren[0] += 1
            self._barren += 1
        if not kinds:
            return
        whole = bool(kinds & self._things) or spot.sort == "module"
        parts = sample
        if (whole and self._sampling) or spot.sort == "module":
            keys, parts = self._whole(spot)
        elif spot.sort == "mapping":
            keys, parts = sorts.entries(spot.sort, spot.value, len(sample))
        if kinds & self._things:
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
        self._kinds_of(parts)
        return keys, parts

    def _kinds_of(self, parts: list[Any]) -> set[int]:
        """Identities of the types among some objects, those left out that lead nowhere."""
        kinds = set(map(id, map(type, parts)))
        if not kinds <= self._skip:
            for kind in map(type, parts):
                if id(kind) not in self._sorts:
                    self._learn(kind)
        return kinds - self._skip

    def _learn(self, kind: type[Any]) -> str:
        sort = self._sorts[id(kind)] = sorts.sort_of(kind)
        if sort == "skip":
            self._skip.add(id(kind))
        if sort in ("tensor", "module", "optimizer"):
            self._things.add(id(kind))
        if sort not in ("skip", "tensor", "optimizer"):
            self._deep.add(id(kind))
        return sort

    def _take(self, spot: Spot, parts: list[Any], keys: list[Any] | None) -> None:
        """Notes the tensors, modules and optimizers in a container, and the tensors as a group."""
        group: dict[int, tuple[str, torch.Tensor]] = {}
        own = fresh = False
        things, seen, known = self._things, self._seen, self._sorts
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
                    if sort == "tensor" and (listed := spot.list_of_records()):
                        self.found.records[id(part)] = listed
                if sort == "tensor":
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
        places = self._deep_places(parts)
        count = _SCOUTS[spot.depth] if self._sampling and spot.sort not in ("object", "module") else ELEMENTS
        if len(places) > count:
            # Two thirds from the front, the others from the end, where a running program appends.
            start, end = count - count // 3, len(places) - count // 3
            self._put_off.append(spot)
            places = places[:start] + places[end:]
        if (
            self._sampling
            and not spot.fruitful
            and self._are_barren([parts[place] for place in places], spot.depth + 1)
        ):
            return
        self._enter(spot, parts, keys, places, following)

    def _are_barren(self, parts: list[Any], depth: int) -> bool:
        """True if nothing is in the samples of some containers, nor below them; all of one depth are asked at once.

        One look at a container costs more than the samples of twenty: a walk of a million objects is made of this.
        """
        # An object and its dictionary are two containers, and one step for the user.
        for level in range(depth, 2 * _DEPTH):
            if not parts:
                break
            limit = _SAMPLES[min(level, _DEPTH - 1)]
            in_each = min(limit, max(_IN_EACH_LIST, _IN_LISTS // len(parts)))
            sorted_parts = [(self._sorts[id(type(part))], part) for part in parts]
            inner = sorts.samples(sorted_parts, in_each, limit)
            if self._kinds_of(inner) & self._things:
                return False
            self._barren += len(parts)
            deep = self._deep_places(inner)
            # Those of the first containers and of the last: each with all that is in it.
            parts = [
                inner[place] for place in (deep if len(deep) <= _AT_ONCE else (*deep[:_AT_FRONT], *deep[-_AT_END:]))
            ]
        return True

    def _deep_places(self, parts: list[Any]) -> list[int]:
        """Places of what can be looked into."""
        return list(compress(range(len(parts)), map(self._deep.__contains__, map(id, map(type, parts)))))

    def _enter(
        self, spot: Spot, parts: list[Any], keys: list[Any] | None, places: list[int], following: list[Spot]
    ) -> None:
        for place in places:
            part = parts[place]
            sort = self._sorts[id(type(part))]
            # What a dictionary of an object holds is what the object holds.
            depth = spot.depth if spot.sort == "object" and sort == "mapping" else spot.depth + 1
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
                self._enter(spot, parts, keys, self._deep_places(parts), following)
            else:
                self._put_off.append(spot)
        return following
