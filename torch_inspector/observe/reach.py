"""Whether the user's variables lead to some memory, through anything: closures, classes, objects of libraries.

Before it is said that no variable holds a tensor, the garbage collector's own view of who refers to whom is searched
from the variables on. It names nothing and runs no code of the user. What it cannot finish, it does not claim.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterable
from time import thread_time
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds, others, private, sorts

_CHUNK = 64
# A container longer than this is only followed if one of its first elements can lead somewhere.
_LONG = 2_000
# The longest one that is read at all: 10 ns for an element.
_LONGEST = 200_000
# Their objects lead to IPython's own references, or to everything.
_WALLS = frozenset(("IPython", "ipykernel", "traitlets", "torch_inspector", "zmq", "tornado", "asyncio", "_pytest"))
_PACKAGES = ("site-packages", "dist-packages")
_CONTAINERS = ("mapping", "list", "tuple", "set", "frozenset", "deque")
_FOLLOWED = (type, FunctionType, ModuleType)
_NOTHING = sorts.ATOMS - {id(kind) for kind in (*_FOLLOWED, *sorts.BOUND)}


class Reach:
    """One search for some storages.

    Args:
        wanted: Identities of storages.
        without: Objects that do not count: the namespace itself, IPython's history.
        cpu_s: Processor time that it may take.
    """

    def __init__(self, wanted: Iterable[int], without: Iterable[Any], cpu_s: float) -> None:
        self.wanted = set(wanted)
        """Storages that have not been found so far."""
        self.complete = True
        self._gradients = gradients_readable()
        self._seen: set[int] = {id(thing) for thing in without}
        self._sorts: dict[int, str] = dict.fromkeys(_NOTHING, "skip")
        self._deadline = thread_time() + cpu_s

    def search(self, roots: Iterable[Any]) -> None:
        """Follows all references from the roots, until everything wanted is found.

        Args:
            roots: The values of the user's variables.
        """
        level = self._new(list(roots))
        while level and self.wanted:
            following: list[Any] = []
            for start in range(0, len(level), _CHUNK):
                if thread_time() > self._deadline:
                    self.complete = False
                    return
                following += self._new(gc.get_referents(*level[start : start + _CHUNK]))
            level = following

    def _new(self, things: list[Any]) -> list[Any]:
        """Those of some objects that have not been met and are to be followed."""
        found = []
        for thing in things:
            sort = self._sorts.get(id(type(thing))) or self._learn(type(thing))
            if sort == "skip" or id(thing) in self._seen:
                continue
            self._seen.add(id(thing))
            if sort == "walk" or self._follows(sort, thing):
                found.append(thing)
        return found

    def _learn(self, kind: type[Any]) -> str:
        sort = self._sorts[id(kind)] = _sort_of(kind)
        return sort

    def _follows(self, sort: str, thing: Any) -> bool:
        if sort == "tensor":
            self.wanted -= dict(storages_behind(thing, gradients=self._gradients)).keys()
        elif sort == "storage":
            self.wanted.discard(thing._cdata)
        elif sort == "array":
            self._meet_base(thing)
        elif sort == "code":
            self._leave_out_globals(thing)
        elif sort == "python module":
            return _is_users(_name_of_module(thing))
        elif sort == "class":
            return _is_users(sorts.module_of(thing), main=True)
        elif sort != "walk":
            return self._follows_container(sort, thing)
        return True

    def _follows_container(self, sort: str, container: Any) -> bool:
        count = sorts.length(sort, container)
        if count > _LONG:
            first = sorts.elements(sort, container, _LONG)
            if _NOTHING.issuperset(map(id, map(type, first))):
                return False
        self.complete = self.complete and count <= _LONGEST
        return count <= _LONGEST

    def _meet_base(self, array: Any) -> None:
        """An array made by `tensor.numpy()` refers to the tensor, which the garbage collector does not know."""
        get_base = sys.modules["numpy"].ndarray.base.__get__
        base = get_base(array)
        while base is not None and (self._sorts.get(id(type(base))) or self._learn(type(base))) == "array":
            base = get_base(base)
        if base is not None:
            self._new([base])

    def _leave_out_globals(self, code: Any) -> None:
        """A function or frame refers to all global names of its module."""
        names = code.f_globals if type(code) is FrameType else code.__globals__
        if not _is_users(names.get("__name__")):
            self._seen.add(id(names))
        self._seen.add(id(names.get("__builtins__")))


def _sort_of(kind: type[Any]) -> str:
    bases = set(map(id, kinds.mro_of(kind)))
    numpy = sys.modules.get("numpy")
    for base, sort in (
        (torch.Tensor, "tensor"),
        (torch.UntypedStorage, "storage"),
        (type, "class"),
        (ModuleType, "python module"),
        (FunctionType, "code"),
        (FrameType, "code"),
        (getattr(numpy, "ndarray", None), "array"),
    ):
        if id(base) in bases:
            return sort
    if sorts.module_of(kind).partition(".")[0] in _WALLS:
        return "skip"
    sort = sorts.sort_of(kind)
    return sort if sort in _CONTAINERS else "walk"


def _name_of_module(module: Any) -> str:
    name = kinds.fields_of(module).get("__name__")
    return name if type(name) is str else ""


def _is_users(name: object, *, main: bool = False) -> bool:
    """True for Python modules that the user wrote; `__main__` is the namespace itself and counts for classes only."""
    top = name.partition(".")[0] if type(name) is str else ""
    if top == "__main__":
        return main
    if not top or top in _WALLS or top in sys.stdlib_module_names or top == "torch":
        return False
    file = kinds.fields_of(sys.modules.get(top)).get("__file__")
    return type(file) is not str or not any(folder in file for folder in _PACKAGES)


def storages_behind(tensor: Any, *, gradients: bool) -> list[tuple[int, int]]:
    """Identity and bytes of the storage of a tensor and, if asked for, of its gradient."""
    both = (tensor, as_torch.grad(tensor) if gradients and as_torch.requires_grad(tensor) and is_leaf(tensor) else None)
    found = [private.storage_of(one) for one in both if one is not None]
    return [storage for storage in found if storage is not None]


def is_leaf(tensor: Any) -> bool:
    """True for leaves; not for a view that an in-place operation has made invalid, where torch refuses to say."""
    try:
        return bool(as_torch.is_leaf(tensor))
    except RuntimeError:
        return False


def gradients_readable() -> bool:
    """True if no other thread can be changing gradients now."""
    return threading.current_thread() is threading.main_thread() and not others.may_train()
