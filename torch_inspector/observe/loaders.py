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
from torch_inspector.observe.class_order import ClassOrder, batch_in_order
from torch_inspector.observe.naming import outer_name
from torch_inspector.observe.unsendable import unsendable
from torch_inspector.observe.workers import generators_in
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places
    from torch_inspector.observe.recorder import Recorder

_LOADERS_KEPT = 256


class _Tally:
    """One loader's batches from one line."""

    __slots__ = (
        "batch_size", "batches", "drained", "drops", "failed", "followed", "generators", "in_order", "kind", "known_as",
        "order", "passes", "pin_memory", "place", "steps", "unsendable", "waited_s", "workers",
    )  # fmt: skip

    def __init__(self, loader: Any, place: Place, places: Places) -> None:
        settings = kinds.fields_of(loader)
        self.kind = kinds.class_name(loader)
        self.place, self.known_as = place, ""
        size = settings.get("batch_size")
        self.batch_size = size if type(size) is int else None
        self.workers = int(settings.get("num_workers") or 0)
        self.pin_memory = bool(settings.get("pin_memory"))
        self.generators = generators_in(loader, places.tree_of) if self.workers > 1 else ()
        self.drops = settings.get("drop_last") is True and not kinds.is_a(settings.get("dataset"), IterableDataset)
        self.batches, self.passes = 0, 0
        self.waited_s = 0.0
        self.drained = False
        self.in_order = batch_in_order(loader)
        self.order = ClassOrder() if self.in_order else None
        self.followed = 0
        """Address of the iterator whose pass `order` follows."""
        self.steps = 0
        """Optimizer steps of the cell before the latest batch of that pass."""
        self.failed = ""
        self.unsendable = unsendable(loader) if self.workers else ()

    def fact(self) -> LoaderFact:
        """What is known of it now."""
        order = self.order
        return LoaderFact(
            self.place,
            self.kind,
            self.batch_size,
            self.workers,
            self.pin_memory,
            self.batches,
            self.waited_s,
            self.generators,
            self.drained,
            order.runs() if order is not None else (),
            order.trained if order is not None else 0,
            self.failed,
            self.unsendable,
            self.in_order,
            order.of_parts() if order is not None else (),
            max(self.passes, 1),
            self.known_as,
        )

    def follow(self, batch: Any, steps: int) -> None:
        """Looks at the classes of a batch, and whether the one before it was learned from."""
        order, self.order = self.order, None
        if order is None:
            return
        self._note_steps(order, steps)
        order.add(batch)
        self.order = order if order.is_sorted else None

    def end(self, steps: int) -> None:
        """The pass is done: its last batch was learned from, or not."""
        if self.order is not None:
            self._note_steps(self.order, steps)
        self.followed = -1

    def _note_steps(self, order: ClassOrder, steps: int) -> None:
        order.trained += bool(order.batches) and steps > self.steps
        self.steps = steps


class LoaderWatch:
    """Records one cell's loaders while it is open."""

    def __init__(self, steps: Callable[[], int] = int) -> None:
        self._steps = steps
        """How many optimizer steps the cell has made so far."""
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
        return tuple(tally.fact() for tally in self._tallies.values())

    def _wrap_iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(loader: Any) -> Any:
            try:
                running = original(loader)
            except BaseException as error:
                if self._recorder is not None:
                    self._note(self._recorder, loader, None, error)
                unframe(error)
                raise
            if self._recorder is not None and len(self._tallies) < _LOADERS_KEPT:
                self._note(self._recorder, loader, running)
            return running

        return iterate

    def _note(self, recorder: Recorder, loader: Any, running: Any, error: BaseException | None = None) -> None:
        with recorder.failures.guard("loader"):
            frame = recorder.places.user_frame(sys._getframe(2))
            place = recorder.places.find(frame)
            key = (recorder.keys.of(loader), place)
            tally = self._tallies.get(key)
            if tally is None:
                tally = self._tallies[key] = _Tally(loader, place, recorder.places)
                tally.known_as = outer_name(frame, loader) if frame is not None else ""
            if error is not None:
                tally.failed = kinds.class_name(error)
                return
            tally.passes += 1
            tally.followed = -1 if tally.followed else id(running)
            self._running[id(running)] = tally

    def _wrap_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def next_batch(running: Any) -> Any:
            tally = self._running.get(id(running)) if self._recorder is not None else None
            begun = perf_counter()
            try:
                batch = original(running)
            except BaseException as error:
                if tally is not None:
                    self._ended(tally, running, error)
                unframe(error)
                raise
            if tally is not None:
                tally.batches += 1
                tally.waited_s += perf_counter() - begun
                if tally.order is not None and tally.followed == id(running):
                    self._follow(tally, batch)
            return batch

        return next_batch

    def _follow(self, tally: _Tally, batch: Any) -> None:
        recorder = self._recorder
        if recorder is not None:
            with recorder.failures.guard("loader"):
                tally.follow(batch, self._steps())

    def _ended(self, tally: _Tally, running: Any, error: BaseException) -> None:
        """A pass came to its end, or failed."""
        if type(error) is not StopIteration:
            tally.failed = kinds.class_name(error)
            return
        tally.drained = tally.drops
        if tally.followed == id(running):
            tally.end(self._steps())
