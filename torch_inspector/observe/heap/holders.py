"""All that refers to one object, each with the shortest way from a root."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import torch

from torch_inspector.account import HolderRow, HoldersReport
from torch_inspector.observe import kinds, private
from torch_inspector.observe.heap.explain import IPYTHON, LAST_EXCEPTIONS, USER, Look, Roots
from torch_inspector.observe.heap.search import WALL
from torch_inspector.observe.heap.storages import Memory, memory_of_storage, memory_of_tensor
from torch_inspector.observe.heap.walls import library_modules
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.paths import path_of_attribute, path_of_name
from torch_inspector.observe.uncollected import uncollected

_MOST = 100
# Position of graphs among the holders, counted in steps from a root.
_LAST = 1_000
_GRAPH = "(its graph)"
_DELETABLE = re.compile(r"[A-Za-z_][\w.]*(\[[^\]()]*\]|\.\w+)*")


def holders(roots: Roots, thing: Any, subject: str, budget_s: float) -> HoldersReport:
    """Finds what keeps an object alive.

    Args:
        roots: Where a look begins.
        thing: A tensor, a storage, a module, or any other object.
        subject: What the user calls it.
        budget_s: Seconds after which the search stops.
    """
    with uncollected(), private.unseen(), torch.no_grad():
        look = Look(roots, perf_counter() + budget_s)
        try:
            look.run(thorough=True)
            return _Holders(look, roots, thing).report(subject)
        finally:
            look.drop()


def holders_of_row(roots: Roots, path: str, budget_s: float) -> HoldersReport | None:
    """The same for what a row of the account leads to; None if there is no such row any more."""
    with uncollected(), private.unseen(), torch.no_grad():
        look = Look(roots, perf_counter() + budget_s)
        try:
            look.run(thorough=True)
            thing = look.rows().holder_of(path)
            return None if thing is None else _Holders(look, roots, thing).report(path)
        finally:
            look.drop()


class _Holders:
    """The answer for one object."""

    def __init__(self, look: Look, roots: Roots, thing: Any) -> None:
        self._look = look
        self._roots = roots
        self._thing = thing
        self._memory = _memory_of(thing)
        self._targets = self._same_memory()

    def report(self, subject: str) -> HoldersReport:
        rows: dict[str, tuple[int, HolderRow]] = {}
        for steps, row in self._rows():
            if row.path not in rows or steps < rows[row.path][0]:
                rows[row.path] = (steps, row)
        ordered = tuple(row for _, row in sorted(rows.values(), key=lambda pair: pair[0]))
        nbytes, device = (self._memory.nbytes, self._memory.device) if self._memory else (self._module_nbytes(), "")
        notes = () if self._look.search.complete else ("the time was over: there may be more holders",)
        return HoldersReport(subject, nbytes, device, ordered[:_MOST], notes)

    def _same_memory(self) -> list[Any]:
        """The object, and every tensor and storage that shares its memory."""
        targets = [self._thing]
        for other in self._look.account.tensors() if self._memory is not None else ():
            memory = _memory_of(other)
            if memory is not None and memory == self._memory and other is not self._thing:
                targets.append(other)
        return targets

    def _module_nbytes(self) -> int:
        pieces = self._look.account.pieces
        owners = {id(self._thing)} | {id(m) for m in self._submodules()}
        roles = self._look.account.roles
        return sum(p.nbytes for p in pieces if (r := roles.get(id(p.holder))) and id(r[1]) in owners)

    def _submodules(self) -> Iterator[Any]:
        from torch_inspector.observe.layers import walk_modules

        if kinds.is_a(self._thing, torch.nn.Module):
            yield from (module for _, module in walk_modules(self._thing))

    def _rows(self) -> Iterator[tuple[int, HolderRow]]:
        wanted = {id(target): target for target in self._targets}
        yield from self._names(wanted)
        yield from self._referrers(wanted)
        yield from self._graphs()

    def _names(self, wanted: dict[int, Any]) -> Iterator[tuple[int, HolderRow]]:
        for name, value in list(self._roots.names.items()):
            if id(value) in wanted:
                path = path_of_name(name)
                yield (
                    0,
                    HolderRow(
                        path, IPYTHON if hidden(name) else "name", _freed_by(path, IPYTHON if hidden(name) else "")
                    ),
                )
        for label, value in self._look.frames():
            if id(value) in wanted:
                yield 1, HolderRow(label, "frame", "")
        for module, fields in library_modules(besides=self._roots.names):
            for name, value in list(fields.items()):
                if id(value) in wanted and type(name) is str:
                    yield 1, _in_library(module, name)

    def _referrers(self, wanted: dict[int, Any]) -> Iterator[tuple[int, HolderRow]]:
        search, trails = self._look.search, self._look.trails
        for holder in gc.get_referrers(*self._targets):
            if search.seen.get(id(holder), WALL) == WALL:
                continue
            trail = trails.of(holder)
            before = trail.things[-2] if len(trail.things) > 1 else None
            for child in trails.parts(holder):
                if id(child) in wanted and trail.label and id(holder) not in wanted:
                    path = trails.extended(trails.text(holder), before, holder, child)
                    kind = trail.phase if trail.phase != USER else _flavour(trails.flavour(child))
                    whole = _belongs(before, holder)
                    fix = _freed_by(trail.label if whole else path, trail.phase, trail.label)
                    yield len(trail.things), HolderRow(path, kind, fix)

    def _graphs(self) -> Iterator[tuple[int, HolderRow]]:
        memory = self._memory
        piece = self._look.account.piece_of(memory) if memory is not None else None
        for holder, how in [(piece.holder, piece.how), *piece.others] if piece is not None else ():
            path = self._look.trails.text(holder)
            if _GRAPH in how and path:
                yield _LAST, HolderRow(f"{path} {_GRAPH}", "activation", _freed_by(path, ""))


def _in_library(module: str, name: str) -> HolderRow:
    """A variable of a module that the user did not write; `sys` keeps the last exception in its own."""
    path = path_of_attribute(module, name)
    kind = "exception" if path in LAST_EXCEPTIONS else "library"
    return HolderRow(path, kind, _freed_by(path, kind) if kind == "exception" else "")


def _flavour(name: str) -> str:
    return "name" if name == "tensor" else name


def _belongs(owner: Any, holder: Any) -> bool:
    """True for a part that cannot sensibly be taken out: of a module, of an optimizer's groups."""
    fields = owner if type(owner) is dict else kinds.fields_of(owner) if owner is not None else {}
    return any(fields.get(name) is holder for name in ("_parameters", "_buffers", "_modules", "params"))


def _memory_of(thing: Any) -> Memory | None:
    if kinds.is_a(thing, torch.Tensor):
        return memory_of_tensor(thing)
    return memory_of_storage(thing) if kinds.is_a(thing, torch.UntypedStorage) else None


def _freed_by(path: str, phase: str, label: str = "") -> str:
    """The line that lets go of what a path leads to."""
    if phase in (IPYTHON, "exception"):
        return "%torchcheck free" + (" --traceback" if phase == "exception" else "")
    if _DELETABLE.fullmatch(path):
        return f"del {path}"
    return f"del {label}" if label.isidentifier() else ""
