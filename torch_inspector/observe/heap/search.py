"""Goes from a set of roots along all references, level by level, and notes where each object was first met.

One call of `gc.get_referents` serves a chunk of objects, and only the number of the chunk is remembered for what it led
to: the real parent is looked for later, for the few objects that are shown (`trail.py`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from time import perf_counter
from types import FrameType, FunctionType, GetSetDescriptorType
from typing import Any

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.heap.walls import is_machinery
from torch_inspector.observe.saved import SavedTensor, shown_by, shows_itself

# Members of a chunk: small ones make names cheap and the search dear.
CHUNK = 96
_CLOCK_EVERY = 64
# A container with more elements is put off until everything else is done, unless it holds tensors itself.
_HUGE = 20_000
# How an object was first met, where that is no chunk.
WALL, ROOT, LINK = -1, -2, -3

_SORTS: tuple[tuple[type[Any], str], ...] = (
    (torch.Tensor, "tensor"),
    (torch.UntypedStorage, "storage"),
    (torch.nn.Module, "module"),
    (torch.optim.Optimizer, "optimizer"),
    (type, "class"),
    (FunctionType, "function"),
    (FrameType, "frame"),
)
_IPYTHON = "IPython"
# What Python code keeps of an autograd graph by itself, as `checkpoint` does.
_SAVED = SavedTensor if shows_itself else None
Link = tuple[Any, Any, str]
"""An object, what led to it, and how."""


class Found:
    """What a search has come upon since it was asked last."""

    __slots__ = ("modules", "nodes", "optimizers", "storages", "tensors")

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.storages: list[Any] = []
        self.nodes: list[Any] = []
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []


class Search:
    """A walk over the heap that can be continued from other roots. Holds the user's objects until `drop`.

    Args:
        without: Addresses of objects that are not gone through.
        deadline: `perf_counter()` time at which to stop.
    """

    def __init__(self, without: set[int], deadline: float) -> None:
        self.seen: dict[int, int] = dict.fromkeys(without, WALL)
        """For each object met, the number of the chunk that led to it, or `WALL`, `ROOT`, `LINK`."""
        self.chunks: list[list[Any]] = []
        self.roots: dict[int, tuple[str, str]] = {}
        """Address of each root: phase and label."""
        self.links: dict[int, tuple[Any, str]] = {}
        """What was reached by hand rather than by `gc.get_referents`: from where, and how."""
        self.complete = True
        self._found = Found()
        self._deadline = deadline
        self._kept: list[Any] = []
        self._put_off: list[tuple[str, Any]] = []
        self._globals: dict[int, dict[str, Any]] = {}
        self._plain: set[int] = set()
        self._sorts: dict[int, str] = {}
        numpy = sys.modules.get("numpy")
        self._array: Any = getattr(numpy, "ndarray", None)

    def go(self, phase: str, roots: Iterable[tuple[str, Any]]) -> None:
        """Searches from labelled objects."""
        fresh = []
        for label, thing in roots:
            if id(thing) not in self.seen:
                self.seen[id(thing)] = ROOT
                self.roots[id(thing)] = (phase, label)
                fresh.append(thing)
        self._begin(phase, fresh)

    def lead(self, phase: str, links: Iterable[Link]) -> None:
        """Continues with objects that the garbage collector's view of references does not show."""
        fresh = []
        for thing, origin, how in links:
            if id(thing) not in self.seen:
                self.seen[id(thing)] = LINK
                self.links[id(thing)] = (origin, how)
                fresh.append(thing)
        self._begin(phase, fresh)

    def finish_huge(self) -> None:
        """Looks into the containers that were put off."""
        put_off, self._put_off = self._put_off, []
        for phase, container in put_off:
            self._begin(phase, [container], huge=True)

    def namespaces(self) -> list[dict[str, Any]]:
        """Global variables of functions and frames that were passed, once."""
        found, self._globals = list(self._globals.values()), {}
        return [names for names in found if self.seen.pop(id(names), WALL) == WALL]

    def take(self) -> Found:
        """What was found since the last call."""
        found, self._found = self._found, Found()
        return found

    def drop(self) -> None:
        """Lets go of everything."""
        for held in (self.chunks, self._kept, self.links, self._put_off, self._globals):
            held.clear()
        self._found = Found()

    # levels -------------------------------------------------------------------

    def _begin(self, phase: str, things: list[Any], *, huge: bool = False) -> None:
        self._kept += things
        self._meet_untracked(things)
        level = things if huge else self._followed(phase, things)
        while level:
            following: list[Any] = []
            for start in range(0, len(level), CHUNK):
                if not len(self.chunks) % _CLOCK_EVERY and perf_counter() > self._deadline:
                    self.complete = False
                    return
                following += self._expand(phase, level[start : start + CHUNK], huge=huge)
            level, huge = following, False

    def _expand(self, phase: str, part: list[Any], *, huge: bool) -> list[Any]:
        """What a chunk leads to that was not met before and is followed."""
        things = gc.get_referents(*part)
        if len(things) > _HUGE and not huge:
            part = self._without_huge(phase, part)
            things = gc.get_referents(*part)
        number = len(self.chunks)
        self.chunks.append(part)
        self._meet_untracked(things)
        seen = self.seen
        fresh = {id(thing): thing for thing in filter(gc.is_tracked, things)}
        addresses = [address for address in fresh if address not in seen]
        for address in addresses:
            seen[address] = number
        return self._followed(phase, [fresh[address] for address in addresses])

    def _without_huge(self, phase: str, part: list[Any]) -> list[Any]:
        kept = []
        for thing in part:
            things = gc.get_referents(thing)
            if len(things) > _HUGE and not self._holds_tensors(things):
                self._put_off.append((phase, thing))
            else:
                kept.append(thing)
        return kept

    def _holds_tensors(self, things: list[Any]) -> bool:
        kinds_met = {id(kind): kind for kind in map(type, things)}
        return any(self._sort_of(kind) in ("tensor", "storage", "node") for kind in kinds_met.values())

    def _meet_untracked(self, things: list[Any]) -> None:
        """Finds what hangs on objects that the garbage collector does not know: arrays, saved tensors."""
        array, saved = self._array, _SAVED
        for thing in [thing for thing in things if type(thing) is array or type(thing) is saved]:
            if type(thing) is array:
                self._meet_behind(thing, _base_of(thing, array), ".base")
            else:
                self._meet_behind(thing, shown_by(thing), ".data")

    def _meet_behind(self, thing: Any, behind: Any, how: str) -> None:
        if behind is not None and id(behind) not in self.seen:
            self.seen.setdefault(id(thing), len(self.chunks) - 1)
            self.seen[id(behind)] = LINK
            self.links[id(behind)] = (thing, how)
            self._kept.append(thing)
            self._kept += self._followed("", [behind])

    # sorts --------------------------------------------------------------------

    def _followed(self, phase: str, things: list[Any]) -> list[Any]:
        """Notes what is looked for, and gives what is to be followed."""
        # Nearly all are containers of these three, and a comparison is a tenth of any other question.
        others = [t for t in things if type(t) is not list and type(t) is not tuple and type(t) is not dict]
        if self._plain.issuperset(map(id, map(type, others))):
            return things
        return [thing for thing in things if self._meet(phase, thing)]

    def _meet(self, phase: str, thing: Any) -> bool:
        sort = self._sorts.get(id(type(thing))) or self._sort_of(type(thing))
        if sort == "plain":
            return True
        if sort in ("tensor", "storage", "node", "module", "optimizer"):
            getattr(self._found, f"{sort}s").append(thing)
            return sort != "storage"
        if sort in ("function", "frame"):
            self._wall_globals(thing.__globals__ if sort == "function" else thing.f_globals)
            return True
        if sort == "class":
            return kinds.module_of(thing) == "__main__"
        if sort == "machinery" and phase != _IPYTHON:
            # The notebook's own objects are gone through when their turn comes.
            del self.seen[id(thing)]
            return False
        return sort == "machinery"

    def _wall_globals(self, names: dict[str, Any]) -> None:
        if id(names) not in self.seen:
            self.seen[id(names)] = WALL
            self._globals[id(names)] = names

    def _sort_of(self, kind: type[Any]) -> str:
        sort = self._sorts[id(kind)] = _sort_of(kind)
        if sort == "plain":
            self._plain.add(id(kind))
        return sort


def _base_of(array: Any, kind: Any) -> Any:
    """What an array made by `tensor.numpy()` keeps alive: the tensor."""
    base = kind.base.__get__(array)
    while type(base) is kind:
        base = kind.base.__get__(base)
    return base


def _sort_of(kind: type[Any]) -> str:
    bases = set(map(id, kinds.mro_of(kind)))
    for base, sort in _SORTS:
        if id(base) in bases:
            return sort
    if any(type(kinds.class_fields(b).get("next_functions")) is GetSetDescriptorType for b in kinds.mro_of(kind)):
        return "node"
    return "machinery" if is_machinery(kind) else "plain"
