"""Memory that only the frames of a kept exception hold: the last one that was shown, and those in variables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from time import thread_time
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import LocalFact, Place, TracebackFact
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.history import module_tensors, node_of, optimizer_tensors, storages_of
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.namespace import Names, hidden, walk_paths
from torch_inspector.observe.raised import chain_of, exceptions_in, frames_of, traceback_of
from torch_inspector.observe.reach import Reach, gradients_readable, storages_behind

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.place import Places
    from torch_inspector.observe.raised import Passed

LAST = "sys.last_value"
# Time to look for exceptions in variables, then, for each exception that is new, into its frames, and for whether
# anything else holds what is there.
_SEARCH_S, _FRAMES_S, _PROOF_S, _GRAPHS_S = 0.0005, 0.010, 0.020, 0.25
# Exceptions of one cell that are looked into.
_NEW = 16
# Less is not worth the search for other holders.
_SMALL_NBYTES = 64 << 10
# Variables that are told of, and graphs behind them that are read.
_LOCALS, _GRAPHS = 12, 4
_WALLS = ("IPython", "ipykernel", "traitlets", "torch_inspector", "_pytest", "asyncio")
# Text without which a notebook stores no exception.
_HANDLES = ("except", "xception")


@dataclass
class _Local:
    """A variable of a frame with the storages that it was the first to lead to. Holds tensors: drop it at once."""

    path: str
    function: str
    place: Place
    tensors: list[Any]
    own: dict[int, int] = field(default_factory=dict)
    graph: dict[int, int] = field(default_factory=dict)

    def storages(self) -> dict[int, int]:
        """All that it was the first to lead to, with bytes."""
        return {**self.own, **self.graph}


@dataclass
class _Kept:
    """An exception with its paths. Holds it: drop it at once."""

    error: BaseException
    key: int
    cell: int | None
    paths: list[str] = field(default_factory=list)

    def named(self, fact: TracebackFact) -> TracebackFact:
        """What is known of it, with the paths of now."""
        return fact._replace(path=self.paths[0], others=tuple(self.paths[1:]))


class Tracebacks:
    """Looks at each exception once, when it is new."""

    def __init__(self, reader: GraphReader, places: Places) -> None:
        self._reader = reader
        self._places = places
        self._known: dict[int, TracebackFact] = {}
        self._handling = False

    def facts(
        self, variables: Mapping[str, Any], history: Mapping[Any, Any], user: Names, cell: int | None
    ) -> tuple[TracebackFact, ...]:
        """One fact per exception whose frames keep memory that nothing of the user's leads to.

        Args:
            variables: The user's namespace.
            history: IPython's `Out`.
            user: What the walk of the variables found.
            cell: Number of the cell that has ended.
        """
        kept = self._exceptions(variables, cell)
        new = [one for one in kept if one.key not in self._known][:_NEW]
        roots = _Roots(variables, history, user, [one.error for one in kept])
        known = self._known | (self._look(new, roots) if new else {})
        self._known = {one.key: one.named(known[one.key]) for one in kept if one.key in known}
        return tuple(fact for fact in self._known.values() if fact.nbytes)

    def _exceptions(self, variables: Mapping[str, Any], cell: int | None) -> list[_Kept]:
        """Kept exceptions; the last that was shown only if this cell raised it."""
        found: dict[int, _Kept] = {}
        for path, error in chain(self._stored(variables), _last()):
            if id(error) not in found:
                raised = self._raised_by(error)
                if path == LAST and (raised is None or raised != cell):
                    continue
                key = hash((id(error), id(traceback_of(error)), raised))
                found[id(error)] = _Kept(error, key, raised)
            found[id(error)].paths.append(path)
        return list(found.values())

    def _stored(self, variables: Mapping[str, Any]) -> list[tuple[str, BaseException]]:
        self._handling = self._handling or any(
            text in file.code for file in self._places.latest(3) for text in _HANDLES
        )
        if not self._handling:
            return []
        shown = [(name, value) for name, value in dict(variables).items() if not hidden(name)]
        return exceptions_in(shown, thread_time() + _SEARCH_S)

    def _raised_by(self, error: BaseException) -> int | None:
        """The cell whose execution raised an exception: that of the outermost frame which runs a known one."""
        entry, found = traceback_of(error), None
        here = entry.tb_frame if entry is not None else None
        while here is not None:
            file = self._places.file_of(here)
            found, here = file.cell if file is not None else found, here.f_back
        while entry is not None and found is None:
            file = self._places.file_of(entry.tb_frame)
            found, entry = file.cell if file is not None else None, entry.tb_next
        return found

    def _look(self, new: list[_Kept], roots: _Roots) -> dict[int, TracebackFact]:
        """What only the frames of some exceptions keep; what several share counts for the first."""
        deadline = thread_time() + _FRAMES_S
        seen = set(storages_of(roots.user))
        found = {one.key: self._locals(one.error, seen, deadline) for one in new}
        candidates = {key: n for each in found.values() for local in each for key, n in local.storages().items()}
        alone = self._alone(candidates, roots) if sum(candidates.values()) >= _SMALL_NBYTES else set()
        return {one.key: _fact(one, found[one.key], alone) for one in new}

    def _locals(self, error: BaseException, seen: set[int], deadline: float) -> list[_Local]:
        """Variables of the frames, the user's own frames first; each storage counts for the first."""
        found: list[_Local] = []
        frames = sorted(frames_of(error), key=lambda passed: self._places.file_of(passed.frame) is None)
        for passed in frames:
            if thread_time() < deadline and _has_locals(passed):
                found += self._in_frame(passed, seen, deadline)
        self._read_graphs(found, seen, deadline)
        return found

    def _in_frame(self, passed: Passed, seen: set[int], deadline: float) -> list[_Local]:
        place = self._places.place(passed.frame, passed.line)
        name = passed.frame.f_code.co_name
        with locals_of(passed.frame) as values:
            inside = walk_paths(list(values.items()), deadline)
        gradients = gradients_readable()
        found = []
        for path, tensors in _things(inside):
            own = dict(chain.from_iterable(storages_behind(one, gradients=gradients) for one in tensors))
            local = _Local(path, name, place, tensors, {key: own[key] for key in own.keys() - seen})
            seen.update(own)
            if local.own or any(node_of(one) is not None for one in tensors):
                found.append(local)
        return found

    def _read_graphs(self, found: list[_Local], seen: set[int], deadline: float) -> None:
        """What the graphs behind the newest tensors hold besides, those of the user's own frames first."""
        roots = [(node, local) for local in found for one in local.tensors if (node := node_of(one)) is not None]
        roots.sort(key=lambda root: (root[1].place.cell is not None, private.node_number(root[0])), reverse=True)
        for node, local in roots[:_GRAPHS]:
            walk = self._reader.walk([node], deadline)
            if walk is None:
                return
            new = {key: n for key, n in walk.storages.items() if key not in seen and key not in walk.leaf_storages}
            local.graph.update(new)
            seen.update(new)

    def _alone(self, candidates: Mapping[int, int], roots: _Roots) -> set[int]:
        """Those of some storages that nothing of the user's leads to, none of them if that could not be found out."""
        deadline = thread_time() + _GRAPHS_S
        nodes = [node for _, tensor in roots.user.tensors if (node := node_of(tensor)) is not None]
        walk = self._reader.walk(nodes, deadline) if nodes else None
        if nodes and (walk is None or not walk.complete):
            return set()
        alone = candidates.keys() - (walk.storages.keys() if walk is not None else ())
        reach = Reach(alone, (roots.history, roots.variables, *roots.left_out()), _PROOF_S)
        reach.search(roots.values())
        return reach.wanted if reach.complete else set()


@dataclass
class _Roots:
    """What the user has names for."""

    variables: Mapping[str, Any]
    history: Mapping[Any, Any]
    user: Names
    exceptions: list[BaseException]

    def left_out(self) -> list[Any]:
        """Kept exceptions and their tracebacks: what they lead to is what is asked for."""
        errors = [one for error in self.exceptions for one in chain_of(error)]
        return [*errors, *(entry for one in errors if (entry := traceback_of(one)) is not None)]

    def values(self) -> list[Any]:
        """Variables and shown results."""
        named = [value for name, value in list(self.variables.items()) if not hidden(name)]
        return [*named, *list(self.history.values())]


def _last() -> Iterator[tuple[str, BaseException]]:
    """The exception that Python remembers as the last one that was shown."""
    error = getattr(sys, "last_value", None)
    if kinds.is_a(error, BaseException):
        yield LAST, error  # type: ignore[misc]


def _has_locals(passed: Passed) -> bool:
    """True for frames of functions and classes, outside IPython: others have only the variables of their module."""
    frame = passed.frame
    name = dict.get(frame.f_globals, "__name__")
    if type(name) is str and name.partition(".")[0] in _WALLS:
        return False
    return frame.f_code.co_name != "<module>"


def _things(names: Names) -> Iterator[tuple[str, list[Any]]]:
    """Paths in a frame with the tensors there."""
    yield from ((path, [tensor]) for path, tensor in names.tensors)
    yield from ((path, list(module_tensors(module))) for path, module in names.modules)
    yield from ((path, list(optimizer_tensors(optimizer))) for path, optimizer in names.optimizers)


def _sum(storages: Mapping[int, int], alone: Iterable[int]) -> int:
    return sum(storages[key] for key in storages.keys() & alone)


def _fact(kept: _Kept, found: list[_Local], alone: set[int]) -> TracebackFact:
    made = [_local_fact(local, alone) for local in found]
    largest = sorted((local for local in made if local.nbytes), key=lambda local: -local.nbytes)
    return TracebackFact(
        path=kept.paths[0],
        kind=kinds.class_name(kept.error),
        key=kept.key,
        cell=kept.cell,
        nbytes=sum(local.nbytes for local in largest),
        locals=tuple(largest[:_LOCALS]),
    )


def _local_fact(local: _Local, alone: set[int]) -> LocalFact:
    one = local.tensors[0] if len(local.tensors) == 1 else None
    return LocalFact(
        path=local.path,
        function=local.function,
        place=local.place,
        nbytes=_sum(local.storages(), alone),
        graph_nbytes=_sum(local.graph, alone),
        shape=_shape(one),
        device=str(as_torch.device(local.tensors[0])) if local.tensors else "",
    )


def _shape(tensor: Any) -> tuple[int, ...] | None:
    if tensor is None or not kinds.is_a(tensor, torch.Tensor):
        return None
    try:
        return tuple(int(n) for n in as_torch.shape(tensor))
    except Exception:  # noqa: BLE001
        return None
