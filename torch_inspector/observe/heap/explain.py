"""The full look: every byte of live tensors, with what holds it. On demand only; it costs tenths of a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from torch_inspector.account import MemoryReport
from torch_inspector.observe import kinds, private
from torch_inspector.observe.heap import allocators, storages, walls
from torch_inspector.observe.heap.account import TENSOR, Account
from torch_inspector.observe.heap.census import tensors_of_heap
from torch_inspector.observe.heap.nodes import Graphs
from torch_inspector.observe.heap.rows import Rows
from torch_inspector.observe.heap.search import Found, Search
from torch_inspector.observe.heap.trail import Trails
from torch_inspector.observe.heap.unreached import cycles
from torch_inspector.observe.history import node_of
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.paths import path_of_name
from torch_inspector.observe.reach import gradients_readable
from torch_inspector.observe.uncollected import uncollected

USER, IPYTHON, EXCEPTION, FRAME, LIBRARY, REST = "user", "IPython", "exception", "frame", "library", "rest"
LAST_EXCEPTIONS = ("sys.last_exc", "sys.last_value", "sys.last_traceback")
# A part of the search is left out when what is missing is less than this share of all bytes.
_ENOUGH = 0.005
# Times that objects packed into graphs are searched, each time from what the last found.
_ROUNDS = 8


@dataclass
class Roots:
    """Where a look begins. Holds the user's objects: drop it at once.

    Args:
        names: The user's variables.
        ipython: Labelled objects in which IPython keeps results: `Out`, `_`, its shell.
        ours: Objects of the caller that do not count.
    """

    names: Mapping[Any, Any]
    ipython: tuple[tuple[str, Any], ...] = ()
    ours: tuple[Any, ...] = ()
    frames: tuple[FrameType, ...] = field(default=())
    """Frames of the caller whose variables do not count."""


def explain(roots: Roots, budget_s: float) -> MemoryReport:
    """Finds all memory of live tensors and what holds it.

    Args:
        roots: Where to begin.
        budget_s: Seconds after which the rest is counted but not named.
    """
    begun = perf_counter()
    with uncollected(), private.unseen(), torch.no_grad():
        look = Look(roots, begun + budget_s)
        try:
            look.run()
            report = look.report()
            return replace(report, duration_s=perf_counter() - begun)
        finally:
            look.drop()


class Look:
    """One look, with everything it has found."""

    def __init__(self, roots: Roots, deadline: float) -> None:
        self._roots = roots
        self._deadline = deadline
        self.search = Search(self._walls(), deadline)
        self._totals, blocks = allocators.totals(torch)
        self.account = Account(gradients=gradients_readable(), blocks=blocks)
        self.graphs = Graphs(self.account, deadline)
        self.trails = Trails(self.search, self._name_of_parameter)
        self._heap: list[Any] | None = None

    def _walls(self) -> set[int]:
        without = walls.module_walls() | {id(one) for one in (*self._roots.ours, self._roots, self, self.__dict__)}
        without |= {id(self._roots.names), id(self._roots.ipython), id(self._roots.frames)}
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith(_OWN):
            without.add(id(frame))
            frame = frame.f_back
        return without | {id(frame) for frame in self._roots.frames}

    def run(self, *, thorough: bool = False) -> None:
        """Searches phase by phase, as long as bytes are missing.

        Args:
            thorough: True to search everything, because somebody looks for all holders.
        """
        for phase, make in self._phases():
            for roots in make():
                self.search.go(phase, roots)
            self.take(phase)
        if thorough or self._missing():
            self.search.finish_huge()
            self.take(USER)
        if thorough or self._missing():
            self.search.go(LIBRARY, (("globals of a function", names) for names in self.search.namespaces()))
            self.search.go(LIBRARY, self._libraries())
            self.take(LIBRARY)
        self._count_rest()

    def _phases(self) -> Iterator[tuple[str, Callable[[], Iterable[Iterable[tuple[str, Any]]]]]]:
        """Each part of the search with its roots, in groups: what the first leads to keeps the name it has there."""
        names = [(path_of_name(k), value) for k, value in list(self._roots.names.items()) if not hidden(k)]
        yield USER, lambda: [names]
        yield EXCEPTION, lambda: [_last_exceptions()]
        yield IPYTHON, lambda: [[root] for root in self._roots.ipython]
        yield FRAME, lambda: [self.frames()]

    def _name_of_parameter(self, parameter: Any) -> str:
        _, owner, name = self.account.roles.get(id(parameter), ("", None, ""))
        path = self.trails.text(owner) if owner is not None and name else ""
        return f"{path}.{name}" if path else ""

    def take(self, phase: str) -> None:
        """Counts what the search has found, with the graphs behind it and what these have packed."""
        for _ in range(_ROUNDS):
            found = self.search.take()
            self.account.add(phase, found)
            self.graphs.read(_graph_roots(found), phase)
            packed = self.graphs.take_packed()
            if not packed and not found.tensors:
                return
            self.search.lead(phase, packed)

    # roots --------------------------------------------------------------------

    def frames(self) -> Iterator[tuple[str, Any]]:
        """Local variables of every function that runs, in every thread."""
        own = {id(frame) for frame in self._roots.frames}
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in _running():
            if id(frame) not in own and self._counts(frame):
                where = "" if ident == threading.get_ident() else f" of thread {names.get(ident, ident)}"
                with locals_of(frame, asked=True) as values:
                    label = f"{frame.f_code.co_name}{where}"
                    yield from [(f"{label}: {name}", value) for name, value in list(values.items())]

    def _counts(self, frame: FrameType) -> bool:
        """True for functions that are not ours, and for code of modules whose variables are not seen anyway."""
        if frame.f_code.co_filename.startswith(_OWN):
            return False
        return frame.f_code.co_name != "<module>" or id(frame.f_globals) not in self.search.seen

    def _libraries(self) -> Iterator[tuple[str, Any]]:
        for name, fields in walls.library_modules(besides=self._roots.names):
            self.search.seen.pop(id(fields), None)
            yield name, fields

    # the rest -----------------------------------------------------------------

    def _census(self) -> list[Any]:
        """Every tensor and storage that Python knows and that was not counted yet."""
        if self._heap is None:
            self._heap = tensors_of_heap()
        return self.account.unknown(self._heap)

    def _missing(self) -> bool:
        """True if enough bytes are not named yet to go on."""
        if perf_counter() > self._deadline:
            return False
        trial = Account(gradients=False)
        for thing in self._census():
            _count(trial, thing)
        unknown = sum(piece.nbytes for piece in trial.pieces if self.account.piece_of(piece.memory) is None)
        trial.drop()
        return unknown > _ENOUGH * max(self.account.nbytes(), 1)

    def _count_rest(self) -> None:
        """Counts what no root leads to: cycles, and what C++ holds."""
        # A storage is held by its tensors, which Python does not see: they come first.
        for thing in sorted(self._census(), key=lambda one: not kinds.is_a(one, torch.Tensor)):
            _count(self.account, thing, REST)
        rest = Found()
        holders = (piece.holder for piece in self.account.pieces if piece.phase == REST)
        rest.tensors = [holder for holder in holders if kinds.is_a(holder, torch.Tensor)]
        self.graphs.read(_graph_roots(rest), REST)
        self.search.lead(REST, self.graphs.take_packed())
        self.account.add(REST, self.search.take())

    def report(self) -> MemoryReport:
        """Everything as data."""
        notes = []
        if not self.search.complete or not self.graphs.complete:
            notes.append("the time was over: some holders are not named")
        if self.graphs.unread:
            notes.append("another thread may be training: graphs were not read")
        if self.graphs.cut_nodes:
            notes.append("a graph is too deep to be read to its end")
        return self.rows().report(tuple(notes), self._totals, exact=storages.exact())

    def rows(self) -> Rows:
        """The account, to be put into rows."""
        return Rows(self.account, self.trails, self._deadline, self._cycles)

    def _cycles(self, things: list[Any]) -> set[int]:
        ours = self.account.own() | self.graphs.own() | {id(things), id(self._heap)}
        return cycles(things, self.search, ours, self._deadline)

    def drop(self) -> None:
        """Lets go of everything."""
        self._heap = None
        self.search.drop()
        self.account.drop()
        self.graphs.drop()
        self.trails.drop()


_OWN = str(__file__).rsplit("observe", 1)[0]


def _count(account: Account, thing: Any, phase: str = "") -> None:
    if kinds.is_a(thing, torch.Tensor):
        account.tensor(thing, TENSOR, phase)
    else:
        account.storage(thing, phase)


def _graph_roots(found: Found) -> list[tuple[Any, Any]]:
    pairs = ((node_of(tensor), tensor) for tensor in found.tensors)
    # The tensor comes before the node itself: its name is the better one.
    return [pair for pair in pairs if pair[0] is not None] + [(node, node) for node in found.nodes]


def _running() -> Iterator[tuple[int, FrameType]]:
    """Every frame of every thread but our own on top: a frame with itself among its variables would stay for long."""
    tops: dict[int, FrameType | None] = {**sys._current_frames(), threading.get_ident(): _caller()}
    for ident, top in tops.items():
        frame = top
        while frame is not None:
            yield ident, frame
            frame = frame.f_back


def _caller() -> FrameType | None:
    """The frame that asked for the look."""
    frame = sys._getframe().f_back
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def _last_exceptions() -> Iterator[tuple[str, Any]]:
    for path in LAST_EXCEPTIONS:
        name = path.removeprefix("sys.")
        if hasattr(sys, name):
            yield path, getattr(sys, name)
