"""Walks the user's variables: tensors, modules and optimizers with paths that the user can type.

Runs no code of the user: exact types decide, instance dictionaries are read past `__getattribute__`, and nothing is
compared, measured with `len` of a stranger, or shown.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from types import GetSetDescriptorType, SimpleNamespace
from typing import Any

import torch

# Containers in containers that are looked into.
_DEPTH = 4
# Elements of one container that are looked at.
ELEMENTS = 1_000
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_KEY_LENGTH = 60
_CLOCK_EVERY = 64
_HISTORY = re.compile(r"_(\d+|i\d*|ii|iii|oh|ih|dh|__?)?$|In$|Out$|exit$|quit$|get_ipython$|open$")


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


def hidden(name: object) -> bool:
    """True for names that IPython keeps for itself."""
    return type(name) is not str or _HISTORY.match(name) is not None


def walk_names(names: Iterable[tuple[Any, Any]], deadline: float) -> Names:
    """Finds what a set of variables leads to, breadth first, until a `perf_counter()` time."""
    return walk_paths(((path_of_name(name), value) for name, value in names), deadline)


def walk_paths(paths: Iterable[tuple[str, Any]], deadline: float) -> Names:
    """The same for objects that have a path already."""
    return _Search(deadline).run([(path, value, None, 0) for path, value in paths])


def path_of_name(name: object) -> str:
    """How to type a global variable."""
    if type(name) is str and name.isidentifier():
        return name
    return f"globals()[{key_text(name)}]"


def key_text(key: object) -> str:
    """A dictionary key as the user would type it; only plain keys are shown, and long ones cut."""
    if type(key) is str:
        return repr(key if len(key) <= _KEY_LENGTH else key[:_KEY_LENGTH] + "…")
    if type(key) in (int, bool, float, type(None)):
        return repr(key)
    return "…"


class _Search:
    """One breadth-first walk."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._kinds: dict[type[Any], str] = {}
        self._seen: set[int] = set()
        self._count = 0
        self.found = Names()

    def run(self, level: list[tuple[str, Any, Group | None, int]]) -> Names:
        """Walks level by level, so that short paths win."""
        while level and self.found.complete:
            following: list[tuple[str, Any, Group | None, int]] = []
            for path, value, group, depth in level:
                if self._stop():
                    break
                self._one(path, value, group, depth, following)
            level = following
        return self.found

    def _stop(self) -> bool:
        self._count += 1
        if self._count % _CLOCK_EVERY == 0 and perf_counter() > self._deadline:
            self.found.complete = False
        return not self.found.complete

    def _one(self, path: str, value: Any, group: Group | None, depth: int, following: list[Any]) -> None:
        kind = self._kind(type(value))
        if kind == "skip" or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if kind == "tensor":
            self.found.tensors.append((path, value))
            if group is not None:
                self.found.groups.setdefault(id(group.container), group).tensors.append((path, value))
            return
        if kind == "module":
            self.found.modules.append((path, value))
        elif kind == "optimizer":
            self.found.optimizers.append((path, value))
            return
        if depth < _DEPTH:
            following.extend(_inside(kind, path, value, depth + 1))

    def _kind(self, kind: type[Any]) -> str:
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _sort_of(kind)
        return known


def _mro(kind: type[Any]) -> tuple[type[Any], ...]:
    return type.__dict__["__mro__"].__get__(kind)  # type: ignore[no-any-return]


def _sort_of(kind: type[Any]) -> str:
    """What to do with objects of exactly this type."""
    mro = _mro(kind)
    for base, sort in ((torch.Tensor, "tensor"), (torch.nn.Module, "module"), (torch.optim.Optimizer, "optimizer")):
        if base in mro:
            return sort
    for kinds, sort in ((_MAPPINGS, "mapping"), (_SEQUENCES, "sequence"), (_SETS, "set")):
        if kind in kinds:
            return sort
    if kind is SimpleNamespace or type.__dict__["__module__"].__get__(kind) == "__main__":
        return "object"
    return "named tuple" if tuple in mro and "_fields" in kind.__dict__ else "skip"


def _inside(kind: str, path: str, value: Any, depth: int) -> Iterator[tuple[str, Any, Group | None, int]]:
    """The elements of a container or the attributes of an object, as far as they are looked at."""
    if kind in ("object", "module"):
        for name, part in attributes_of(value):
            if kind == "object" or name not in ("_parameters", "_buffers", "_modules"):
                yield f"{path}.{name}", part, None, depth
        return
    group = Group(path, value)
    if kind == "mapping":
        for key, part in _items(value):
            yield f"{path}[{key_text(key)}]", part, group, depth
    elif kind == "set":
        for part in _first(value):
            yield f"{path} (an element)", part, group, depth
    else:
        for index, part in enumerate(_first(value)):
            yield f"{path}[{index}]", part, group, depth


def _items(mapping: Any) -> list[tuple[Any, Any]]:
    """Entries of a dictionary that another thread may be changing."""
    try:
        return list(islice(dict.items(mapping), ELEMENTS))
    except RuntimeError:
        return []


def _first(container: Any) -> list[Any]:
    try:
        return list(islice(type(container).__iter__(container), ELEMENTS))
    except RuntimeError:
        return []


def attributes_of(thing: Any) -> list[tuple[Any, Any]]:
    """Entries of the instance dictionary, past any attribute access that the class defines."""
    for base in _mro(type(thing)):
        entry = base.__dict__.get("__dict__")
        if entry is not None:
            fields = entry.__get__(thing) if type(entry) is GetSetDescriptorType else None
            return [(k, v) for k, v in _items(fields) if type(k) is str] if type(fields) is dict else []
    return []
