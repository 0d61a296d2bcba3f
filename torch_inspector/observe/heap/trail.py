"""How an object was reached, step by step, and how the user would type that."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from types import (
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    TracebackType,
)
from typing import Any, NamedTuple

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.heap.search import LINK, ROOT, Search
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.paths import key_text, name_of_part, path_of_attribute

# Letters of one path; what lies between its first and last is left out.
_TEXT = 300
# Steps of one trail; longer ones are linked lists.
_LONGEST = 400
_CACHE = type(lru_cache(lambda: None))
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_PLAIN = (dict, list, tuple, set, frozenset)
_REGISTERED = ("_parameters", "_buffers", "_modules")


class Trail(NamedTuple):
    """The way from a root to an object."""

    phase: str
    label: str
    """What the root is called; empty if no root was found."""
    things: tuple[Any, ...]
    """The root, what lies between, the object itself."""


class Trails:
    """Finds trails in what a search has left."""

    def __init__(self, search: Search, name_of_key: Callable[[Any], str] = lambda _: "") -> None:
        self._search = search
        self._name_of_key = name_of_key
        self._parents: dict[int, Any] = {}
        self._texts: dict[int, str] = {}
        self._indices: dict[int, dict[int, Any]] = {}

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
            path = path + link[1] if link is not None else self._extended(path, before, *steps[place - 1 : place + 1])
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
            if any(type(step) in kinds_met or (name == "exception" and _is_error(step)) for step in steps):
                return name
        return "tensor"

    def _extended(self, path: str, before: Any, parent: Any, child: Any) -> str:
        if before is None and type(parent) is dict and self._search.roots.get(id(parent), ("",))[0] == "library":
            name = next((key for key, value in _items(parent) if value is child and type(key) is str), None)
            return path if name is None else path_of_attribute(path, name)
        if kinds.is_a(parent, dict):
            key = next((key for key, value in _items(parent) if value is child), None)
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
        if type(thing) in _PLAIN:
            return parts
        made = [part for part in parts if type(part) is dict and id(part) not in self._search.seen]
        return parts + [value for fields in made for value in list(fields.values())]


_FLAVOURS = (
    ((TracebackType,), "exception"),
    ((GeneratorType, CoroutineType), "generator"),
    ((FunctionType, partial), "closure"),
)


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


def extended(path: str, before: Any, parent: Any, child: Any) -> str:
    """The path of a part, given the path of what holds it.

    Args:
        path: Path of `parent`.
        before: What holds `parent`: an instance dictionary belongs to its object.
        parent: The holder.
        child: The part.
    """
    for kind, describe in _STEPS:
        if kinds.is_a(parent, kind):
            return describe(path, before, parent, child)
    return _attribute(path, before, parent, child)


def _in_dict(path: str, before: Any, parent: Any, child: Any) -> str:
    key = next((key for key, value in _items(parent) if value is child), _NOTHING)
    if key is _NOTHING:
        return f"{path} (a key)"
    if type(key) is str and type(before) is type:
        return path_of_attribute(path, key)
    if type(key) is str and before is not None and kinds.fields_of(before) is parent:
        return path if key in _REGISTERED and kinds.is_a(before, torch.nn.Module) else path_of_attribute(path, key)
    if type(key) is str and _registers(before, parent):
        return f"{path}[{key}]" if key.isdigit() else path_of_attribute(path, key)
    return f"{path}[{key_text(key)}]"


_NOTHING = object()


def _registers(before: Any, parent: Any) -> bool:
    """True for the dictionaries in which a module keeps its parameters, buffers and layers."""
    fields = before if type(before) is dict else kinds.fields_of(before) if before is not None else {}
    return any(fields.get(name) is parent for name in _REGISTERED)


def _items(mapping: Any) -> Iterator[tuple[Any, Any]]:
    try:
        yield from list(dict.items(mapping))
    except RuntimeError:
        return


def _in_sequence(path: str, before: Any, parent: Any, child: Any) -> str:
    if type(before) is FunctionType and before.__closure__ is parent and type(child) is CellType:
        name = {
            id(cell): name for cell, name in zip(before.__closure__ or (), before.__code__.co_freevars, strict=False)
        }.get(id(child))
        return f"{path} (closure over {name})"
    iterate = next(k for k in (list, tuple, deque) if kinds.is_a(parent, k)).__iter__
    place = next((n for n, part in enumerate(iterate(parent)) if part is child), None)
    return f"{path}[{place}]" if place is not None else _attribute(path, None, parent, child)


def _in_set(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return f"{path} (an element)"


def _in_function(path: str, _before: Any, parent: Any, child: Any) -> str:
    closure = parent.__closure__
    if closure is child:
        return path
    cells = closure or ()
    names = parent.__code__.co_freevars
    for name, cell in zip(names, cells, strict=False):
        if cell is child:
            return f"{path} (closure over {name})"
    if parent.__defaults__ is child or parent.__kwdefaults__ is child:
        return f"{path} (default argument)"
    return f"{path} (closure)" if type(child) is tuple else f"{path}.…"


def _same(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return path


def _in_method(path: str, _before: Any, parent: Any, child: Any) -> str:
    return f"{path}.__self__" if parent.__self__ is child else f"{path}.__func__"


def _in_partial(path: str, _before: Any, parent: Any, child: Any) -> str:
    for name in ("func", "args", "keywords"):
        if partial.__dict__[name].__get__(parent) is child:
            return f"{path}.{name}"
    return path


def _in_frame(path: str, _before: Any, parent: Any, child: Any) -> str:
    line = f"line {parent.f_lineno} in {parent.f_code.co_name}"
    with locals_of(parent, asked=True) as values:
        name = next((name for name, value in values.items() if value is child), None)
    return f"{path}, {line}: {name}" if name is not None else f"{path}, {line}"


def _in_traceback(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return path


def _in_generator(path: str, _before: Any, parent: Any, child: Any) -> str:
    frame = parent.gi_frame if type(parent) is GeneratorType else parent.cr_frame
    if frame is None or frame is child:
        return path
    with locals_of(frame, asked=True) as values:
        name = next((name for name, value in values.items() if value is child), None)
    return f"{path} (local {name} of the paused {frame.f_code.co_name})" if name is not None else path


def _attribute(path: str, _before: Any, parent: Any, child: Any) -> str:
    if kinds.is_a(parent, BaseException):
        return path if type(child) in (TracebackType, FrameType) else f"{path}.…" if child is not None else path
    if kinds.is_a(parent, torch.Tensor) and kinds.fields_of(parent) is not child:
        return f"{path} (a hook)" if kinds.is_a(child, dict) else f"{path}.grad_fn"
    if type(parent) is _CACHE:
        return f"{path} (its cache)"
    if kinds.is_a(parent, type) and type(child) is dict:
        return path
    name = name_of_part(parent, child)
    if name is None and kinds.is_a(parent, type):
        name = next((key for key, value in kinds.class_fields(parent).items() if value is child), None)
    # From Python 3.13 on an object refers to its attributes past its dictionary.
    if name == "" or (name in _REGISTERED and kinds.is_a(parent, torch.nn.Module)):
        return path
    return path_of_attribute(path, name) if name else f"{path}.…"


_Describe = Callable[[str, Any, Any, Any], str]
_STEPS: tuple[tuple[type[Any], _Describe], ...] = (
    (dict, _in_dict),
    (list, _in_sequence),
    (tuple, _in_sequence),
    (deque, _in_sequence),
    (set, _in_set),
    (frozenset, _in_set),
    (FunctionType, _in_function),
    (CellType, _same),
    (MethodType, _in_method),
    (BuiltinFunctionType, _same),
    (partial, _in_partial),
    (FrameType, _in_frame),
    (TracebackType, _in_traceback),
    (GeneratorType, _in_generator),
    (CoroutineType, _in_generator),
    (MappingProxyType, _same),
)
