"""Modules and objects that nothing refers to but a circle of which they are part: they wait for Python's collector.

Asked for are those that a variable named before the cell, or that the cell called or deleted, and that live although no
variable names them. That each of their references comes from what they refer to is counted, as the collector does it.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from time import thread_time
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from torch_inspector.facts import CircleFact, syntax
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.history import storages_of
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.linked import made_in
from torch_inspector.observe.namespace import Names, walk_paths
from torch_inspector.observe.rings import ring

# Objects that are counted, time for it, and modules that are asked for after one cell.
_MOST, _LOOK_S, _CANDIDATES = 60_000, 0.030, 64
_SMALL_NBYTES = 64 << 10
# Objects of the user's classes that are asked for after one cell; how long a look for a class is, and how many such.
_INSTANCES, _LONG_S, _LONG_LOOKS = 2_000, 0.010, 3
_CHUNK = 64
# What a list and the call of `getrefcount` refer to themselves.
_OURS = 2
_WALLS = (type, ModuleType, CodeType)


class Circles:
    """Remembers by number which modules variables named; holds none of them."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._named: dict[int, str] = {}
        self._held: set[int] = set()
        self._long_looks = Counter[str]()
        """Looks for objects of a class that a big heap made too long."""

    def facts(self, user: Names, called: frozenset[int], deleted: Iterable[tuple[int, str]]) -> tuple[CircleFact, ...]:
        """One fact per class of which instances wait for the collector, with what they alone hold.

        Args:
            user: What the walk of the variables found.
            called: Keys of modules that the cell called.
            deleted: Keys and paths of what the cell let go of.
        """
        before, self._named = self._named, {self._keys.of(module): path for path, module in user.modules}
        let_go = dict(deleted)
        paths = let_go | {key: before.get(key, "") for key in (*called, *before)}
        self._held -= {*self._named, *let_go}
        asked = [key for key in paths if key not in self._named and key not in self._held]
        asked = [key for key in asked if self._keys.live(key) is not None][:_CANDIDATES]
        if not asked or not user.complete:
            return ()
        waiting, garbage = self._waiting(_without_parts(self._keys, asked, user))
        self._held |= set(asked) - set(waiting)
        if not waiting:
            return ()
        return tuple(self._facts(waiting, paths, user, garbage | self._of_their_classes(waiting)))

    def _of_their_classes(self, waiting: list[int]) -> set[int]:
        """Addresses of what waits below all objects of these classes: of many, a variable named only the last."""
        return _unreferenced(_instances(list({type(self._keys.live(key)) for key in waiting})))

    def unnamed(
        self, user: Names, variables: Mapping[str, Any], code: str, cells: list[ast.Module], deadline: float
    ) -> tuple[CircleFact, ...]:
        """The same for objects that functions of the user made and left, of classes that tell others of themselves."""
        tree = syntax.parse(code)
        lines = made_in(tree, [tree, *cells]) if tree is not None and user.complete else {}
        lines = {name: line for name, line in lines.items() if self._long_looks[name] < _LONG_LOOKS}
        begun = thread_time()
        found = self._left(user, variables, lines)
        if thread_time() > max(deadline, begun + _LONG_S):
            self._long_looks.update(lines.keys())
        return found

    def _left(self, user: Names, variables: Mapping[str, Any], lines: Mapping[str, int]) -> tuple[CircleFact, ...]:
        own = [kind for name in lines if kinds.is_a(kind := variables.get(name), type)]
        things = _objects(own) if own else []
        garbage = frozenset(_unreferenced(things)) if things else frozenset[int]()
        waiting = [one for one in (_objects(own) if garbage else ()) if id(one) in garbage]
        held = set(storages_of(user)) if waiting else set[int]()
        found = []
        for name, line in lines.items():
            same = [(str(place), one) for place, one in enumerate(waiting) if kinds.class_name(one) == name]
            inside = storages_of(walk_paths(same, thread_time() + _LOOK_S))
            nbytes = sum(n for storage, n in inside.items() if storage not in held)
            held |= inside.keys()
            if nbytes >= _SMALL_NBYTES:
                way = ring(same[0][1], garbage)
                found.append(CircleFact("", name, nbytes, -1, len(same), way.names, line, way.through))
        return tuple(found)

    def _waiting(self, alive: list[int]) -> tuple[list[int], frozenset[int]]:
        """Those that only circles refer to, and addresses of all such; none if that could not be found out."""
        things = [self._keys.live(key) for key in alive]
        places = {id(thing): key for thing, key in zip(things, alive, strict=True)}
        garbage = frozenset(_unreferenced(things))
        return [key for address, key in places.items() if address in garbage], garbage

    def _facts(
        self, waiting: list[int], paths: dict[int, str], user: Names, garbage: frozenset[int]
    ) -> list[CircleFact]:
        held, found = set(storages_of(user)), dict[str, CircleFact]()
        things = [self._keys.live(key) for key in waiting]
        keys = {id(thing): key for thing, key in zip(things, waiting, strict=True)}
        groups, deadline = _groups(things, garbage), thread_time() + _LOOK_S
        for group in groups:
            first, kind, key = group[0], kinds.class_name(group[0]), keys[id(group[0])]
            inside = storages_of(walk_paths([(str(place), one) for place, one in enumerate(group)], deadline))
            nbytes = sum(n for storage, n in inside.items() if storage not in held)
            held |= inside.keys()
            old = found.get(kind)
            if old is not None and nbytes >= _SMALL_NBYTES:
                found[kind] = old._replace(nbytes=old.nbytes + nbytes, count=old.count + len(group))
            elif nbytes >= _SMALL_NBYTES:
                way = ring(first, garbage)
                found[kind] = CircleFact(
                    paths.get(key, ""), kind, nbytes, key, len(group), way.names, None, way.through
                )
        return list(found.values())


def only_circles(things: list[Any]) -> bool:
    """True if nothing refers to some objects but circles of which they are part; the list is emptied."""
    wanted = set(map(id, things))
    return bool(wanted) and wanted <= _unreferenced(things)


def _instances(classes: list[Any]) -> list[Any]:
    """Objects of some classes; of modules, those that the cell called are asked for elsewhere."""
    return _objects([kind for kind in classes if not issubclass(kind, torch.nn.Module)])


def _objects(classes: list[Any]) -> list[Any]:
    """Objects of some classes, which they refer to."""
    wanted = set(map(id, classes))
    return [one for one in (gc.get_referrers(*classes) if classes else ()) if id(type(one)) in wanted][-_INSTANCES:]


def _groups(things: list[Any], garbage: frozenset[int]) -> list[list[Any]]:
    """Objects with the others of their class that wait, as nodes of a tree do; each module alone.

    One look for the instances of all classes: each goes through everything that the collector knows.
    """
    found: dict[int, list[Any]] = {}
    for thing in things:
        alone = kinds.is_a(thing, torch.nn.Module)
        found.setdefault(id(thing) if alone else id(type(thing)), []).append(thing)
    known = set(map(id, things))
    for one in _instances(list({id(type(thing)): type(thing) for thing in things}.values())):
        if id(one) in garbage and id(one) not in known and id(type(one)) in found:
            found[id(type(one))].append(one)
    return list(found.values())


def _without_parts(keys: Keys, asked: list[int], user: Names) -> list[int]:
    """Those that are no part of a module which a variable names."""
    parts = {id(part) for _, module in user.modules for _, part in layers.walk_modules(module)}
    return [key for key in asked if id(keys.live(key)) not in parts]


def _unreferenced(things: list[Any]) -> set[int]:
    """Addresses of all below some objects to which every reference comes from there; `things` is emptied."""
    below = _below(things)
    if below is None:
        return set()
    where = {id(thing): place for place, thing in enumerate(below)}
    inner = [0] * len(below)
    following: list[list[int]] = []
    for place in range(len(below)):
        parts = [where[id(part)] for part in gc.get_referents(below[place]) if id(part) in where]
        following.append(parts)
        for part in parts:
            inner[part] += 1
    stack = [place for place in range(len(below)) if sys.getrefcount(below[place]) - _OURS > inner[place]]
    reached = set(stack)
    while stack:
        new = set(following[stack.pop()]) - reached
        reached |= new
        stack += new
    return {address for address, place in where.items() if place not in reached}


def _below(things: list[Any]) -> list[Any] | None:
    """Everything that some objects lead to, classes and namespaces left out; None if it is too much.

    The list that is given is emptied, so that nothing of ours but the result refers to them.
    """
    found: list[Any] = []
    seen: set[int] = set()
    walls: dict[int, bool] = {}
    deadline = thread_time() + _LOOK_S
    _take(things, found, seen, walls)
    things.clear()
    place = 0
    while place < len(found):
        if len(found) > _MOST or thread_time() > deadline:
            return None
        end = min(place + _CHUNK, len(found))
        _take(gc.get_referents(*found[place:end]), found, seen, walls)
        place = end
    return found


def _take(things: list[Any], found: list[Any], seen: set[int], walls: dict[int, bool]) -> None:
    """Adds those that are new and can be part of a circle."""
    for thing in things:
        kind = type(thing)
        if id(thing) in seen or not gc.is_tracked(thing):
            continue
        if id(kind) not in walls:
            walls[id(kind)] = any(kinds.is_a(thing, wall) for wall in _WALLS)
        if not walls[id(kind)]:
            seen.add(id(thing))
            found.append(thing)
            if kind is FunctionType:
                seen |= {id(thing.__globals__), id(thing.__builtins__)}
