"""Watches DataLoaders: settings, batches, time waited."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from torch_inspector.facts import LoaderFact, Place
from torch_inspector.observe import kinds
from torch_inspector.observe.workers import generators_in
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder

_LOADERS_KEPT = 256


class _Tally:
    """One loader's batches from one line."""

    __slots__ = (
        "batch_size", "batches", "drained", "drops", "generators", "kind", "pin_memory", "place", "waited_s", "workers",
    )  # fmt: skip

    def __init__(self, loader: Any, place: Place) -> None:
        settings = kinds.fields_of(loader)
        self.kind = kinds.class_name(loader)
        self.place = place
        size = settings.get("batch_size")
        self.batch_size = size if type(size) is int else None
        self.workers = int(settings.get("num_workers") or 0)
        self.pin_memory = bool(settings.get("pin_memory"))
        self.generators = generators_in(loader) if self.workers > 1 else ()
        self.drops = settings.get("drop_last") is True and not kinds.is_a(settings.get("dataset"), IterableDataset)
        self.batches = 0
        self.waited_s = 0.0
        self.drained = False


class LoaderWatch:
    """Records one cell's loaders while it is open."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._running: dict[int, _Tally] = {}
        self._tallies: dict[tuple[int, Place], _Tally] = {}
        self.patches = (
            Patch(DataLoader, "__iter__", self._wrap_iter),
            Patch(_BaseDataLoaderIter, "__next__", self._wrap_next),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._running, self._tallies = recorder, {}, {}

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None

    def facts(self) -> tuple[LoaderFact, ...]:
        """All loaders of the cell by line."""
        return tuple(
            LoaderFact(
                t.place, t.kind, t.batch_size, t.workers, t.pin_memory, t.batches, t.waited_s, t.generators, t.drained
            )
            for t in self._tallies.values()
        )

    def _wrap_iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(loader: Any) -> Any:
            try:
                running = original(loader)
            except BaseException as error:
                unframe(error)
                raise
            if self._recorder is not None and len(self._tallies) < _LOADERS_KEPT:
                self._note(self._recorder, loader, running)
            return running

        return iterate

    def _note(self, recorder: Recorder, loader: Any, running: Any) -> None:
        with recorder.failures.guard("loader"):
            place = recorder.places.find(sys._getframe(2))
            key = (recorder.keys.of(loader), place)
            self._running[id(running)] = self._tallies.setdefault(key, _Tally(loader, place))

    def _wrap_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def next_batch(running: Any) -> Any:
            tally = self._running.get(id(running)) if self._recorder is not None else None
            begun = perf_counter()
            try:
                batch = original(running)
            except BaseException as error:
                if tally is not None and type(error) is StopIteration:
                    tally.drained = tally.drops
                unframe(error)
                raise
            if tally is not None:
                tally.batches += 1
                tally.waited_s += perf_counter() - begun
            return batch

        return next_batch
