"""How an object was reached, step by step, and how the user would type that."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import (
    CoroutineType,
    FunctionType,
    GeneratorType,
    TracebackType,
)
from typing import Any, NamedTuple

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.heap.links import extended, items_of
from torch_inspector.observe.heap.search import LINK, ROOT, Search
from torch_inspector.observe.paths import path_of_attribute

# Letters of one path; what lies between its first and last is left out.
_TEXT = 300
# Steps of one trail; longer ones are linked lists.
_LONGEST = 400
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_PLAIN = (dict, list, tuple, set, frozenset)


class Trail(NamedTuple):
    """The way from a root to an object."""

    phase: str
    label: str
    """What the root is called; empty if no root was found."""
    things: tuple[Any, ...]
    """The root, what lies between, the object itself."""


class Trails:
    """Finds trails in what a search has left."""

    def __init__(self, search: Search, name_of_key: Callable[[Any], str] | None = None) -> None:
        self._search = search
        self._name_of_key = name_of_key or _no_name
        self._parents: dict[int, Any] = {}
        self._texts: dict[int, str] = {}
        self._indices: dict[int, dict[int, Any]] = {}

    def drop(self) -> None:
        """Lets go of everything, also of who gives names to keys: that may hold this in turn."""
        for held in (self._parents, self._texts, self._indices):
            held.clear()
        self._name_of_key = _no_name

    def of(self, thing: Any) -> Trail:
        """The way by which the search has met an object."""
        things, search = [thing], self._search
        for _ in range(_LONGEST):
            here = things[-1]
            root = search.roots.get(id(here))
            if root is not None:
                return Trail(*root, tuple(reversed(things)))
            parent = self._parent(here)
            if parent is None:
                break
            things.append(parent)
        return Trail("", "", tuple(reversed(things)))

    def text(self, thing: Any) -> str:
        """How the user would type it; empty if no root was found."""
        known = self._texts.get(id(thing))
        if known is not None:
            return known
        trail = self.of(thing)
        path, steps = trail.label, trail.things
        for place in range(1, len(steps) if path else 0):
            link = self._search.links.get(id(steps[place])) if self._search.seen.get(id(steps[place])) == LINK else None
            before = steps[place - 2] if place > 1 else None
            path = path + link[1] if link is not None else self.extended(path, before, *steps[place - 1 : place + 1])
            self._texts.setdefault(id(steps[place]), path)
        if len(path) > _TEXT:
            path = f"{path[: _TEXT // 2]} … {path[-_TEXT // 3 :]}"
        self._texts[id(thing)] = path
        return path

    def flavour(self, thing: Any) -> str:
        """What sort of holder the user meets on the way: `tensor` if there is nothing special about it."""
        steps = self.of(thing).things[:-1]
        if any(_is_hooks(before, here) for before, here in pairwise(steps)):
            return "hook"
        for kinds_met, name in _FLAVOURS:
            if any(kinds.is_one_of(step, kinds_met) or (name == "exception" and _is_error(step)) for step in steps):
                return name
        return "tensor"

    def extended(self, path: str, before: Any, parent: Any, child: Any) -> str:
        """The path of a part, given the path of what holds it; `before` is what holds the holder."""
        if before is None and type(parent) is dict and self._search.roots.get(id(parent), ("",))[0] == "library":
            name = next((key for key, value in items_of(parent) if value is child and type(key) is str), None)
            return path if name is None else path_of_attribute(path, name)
        if kinds.is_a(parent, dict):
            key = next((key for key, value in items_of(parent) if value is child), None)
            name = self._name_of_key(key) if kinds.is_a(key, torch.Tensor) else ""
            if name:
                return f"{path}[{name}]"
        return extended(path, before, parent, child)

    def _parent(self, thing: Any) -> Any:
        address = id(thing)
        if address not in self._parents:
            self._parents[address] = self._find_parent(thing)
        return self._parents[address]

    def _find_parent(self, thing: Any) -> Any:
        met = self._search.seen.get(id(thing))
        if met == LINK:
            return self._search.links[id(thing)][0]
        if met is None or met < 0 or met >= len(self._search.chunks) or met == ROOT:
            return None
        index = self._indices.get(met)
        if index is None:
            index = self._indices[met] = self._index(self._search.chunks[met])
        return index.get(id(thing))

    def _index(self, chunk: list[Any]) -> dict[int, Any]:
        """What each part of the members of a chunk belongs to, by address."""
        index: dict[int, Any] = {}
        for member in chunk:
            for part in self.parts(member):
                index.setdefault(id(part), member)
        return index

    def parts(self, thing: Any) -> list[Any]:
        """What an object refers to, through an instance dictionary that was made after the search, too."""
        parts = gc.get_referents(thing)
        if kinds.is_one_of(thing, _PLAIN):
            return parts
        made = [part for part in parts if type(part) is dict and id(part) not in self._search.seen]
        return parts + [value for fields in made for value in list(fields.values())]


_FLAVOURS = (
    ((TracebackType,), "exception"),
    ((GeneratorType, CoroutineType), "generator"),
    ((FunctionType, partial), "closure"),
)


def _no_name(_key: Any) -> str:
    return ""


def _is_error(thing: Any) -> bool:
    return kinds.is_a(thing, BaseException)


def _is_hooks(owner: Any, thing: Any) -> bool:
    """True for the dictionary in which a module or tensor keeps its hooks."""
    if not kinds.is_a(thing, dict):
        return False
    if kinds.is_a(owner, torch.Tensor):
        return kinds.fields_of(owner) is not thing
    fields = owner if type(owner) is dict else kinds.fields_of(owner)
    return any(fields.get(name) is thing for name in _HOOKS)
