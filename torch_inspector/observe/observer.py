"""Everything that watches torch during one cell, opened and closed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch

from torch_inspector.facts import Cell, ErrorFact, MemoryFact, Snapshot, Trace
from torch_inspector.failures import Failures
from torch_inspector.observe import private, source
from torch_inspector.observe.attention import Attention
from torch_inspector.observe.backward import BackwardWatch
from torch_inspector.observe.budget import Budget
from torch_inspector.observe.checkpoints import CheckpointWatch
from torch_inspector.observe.counted import CountWatch
from torch_inspector.observe.emptied import EmptiedWatch
from torch_inspector.observe.errors import error_fact
from torch_inspector.observe.forwards import ForwardWatch
from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.ledger import Ledger
from torch_inspector.observe.loaders import LoaderWatch
from torch_inspector.observe.memory import memory_facts
from torch_inspector.observe.pinned import with_lines
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.recorder import Recorder
from torch_inspector.observe.retained import with_places
from torch_inspector.observe.snapshot import Look, Snapshots
from torch_inspector.observe.steps import StepWatch
from torch_inspector.observe.wrapper import Patch


class TorchObserver:
    """Watches cells, one after the other. Made when the user has imported torch.

    The wrappers stay in place from `install` to `remove`; between cells they only pass calls on. Putting them in and
    out for every cell would cost half a millisecond each time and wear out the type caches of `nn.Module`: CPython
    gives a class a limited number of versions.
    """

    def __init__(self, places: Places, failures: Failures) -> None:
        self._places = places
        self._failures = failures
        self._keys = Keys()
        self._ledger = Ledger()
        self._reader = GraphReader()
        self._attention = Attention()
        self._forwards = ForwardWatch(self._ledger, self._reader)
        self._forwards.something_new = self._attention.again
        self._backwards = BackwardWatch(self._attention, self._ledger, self._reader, self._forwards)
        self._steps = StepWatch(self._attention, self._ledger, self._forwards)
        self._counted = CountWatch(self._ledger)
        self._loaders = LoaderWatch()
        self._emptied = EmptiedWatch()
        self._checkpoints = CheckpointWatch()
        self._snapshots = Snapshots(self._keys, self._ledger, self._reader, failures, places)
        self._recorder: Recorder | None = None
        self._nodes_before = 0
        self.install()

    def install(self) -> None:
        """Puts all wrappers in place."""
        for install in (*(patch.install for patch in self._patches()), self._steps.install):
            with self._failures.guard("install"):
                install()
        with self._failures.guard("compiler"):
            private.skip_package("torch_inspector.observe")
            private.skip_package("torch_inspector.failures")
            private.tell_dynamo()

    def remove(self) -> None:
        """Puts everything back that was wrapped."""
        self.close()
        for remove in (self._steps.remove, *(patch.remove for patch in reversed(self._patches()))):
            with self._failures.guard("remove"):
                remove()
        with self._failures.guard("compiler"):
            private.tell_dynamo()

    def _patches(self) -> list[Patch]:
        return [patch for watch in self._watches() for patch in watch.patches]

    def _watches(
        self,
    ) -> tuple[ForwardWatch, BackwardWatch, StepWatch, CountWatch, LoaderWatch, EmptiedWatch, CheckpointWatch]:
        watches = self._forwards, self._backwards, self._steps, self._counted, self._loaders
        return *watches, self._emptied, self._checkpoints

    def open(self, budget_s: float) -> None:
        """Begins to record a cell."""
        self.close()
        recorder = Recorder(self._places, self._keys, Budget(budget_s), self._failures)
        self._recorder = recorder
        with self._failures.guard("open"):
            for watch in self._watches():
                watch.open(recorder)
            self._attention.begin(recorder.thread)
        self._nodes_before = private.sequence_number()

    def foresee(self, cell: Cell, names: Mapping[str, Any]) -> None:
        """Looks at what the cell that begins is going to delete."""
        with self._failures.guard("foresee"):
            self._snapshots.foresee(names, cell)

    def close(self) -> None:
        """Records no more."""
        self._attention.watching = False
        for watch in self._watches():
            with self._failures.guard("close"):
                watch.close()

    def trace(self, cell: Cell) -> Trace:
        """What happened since `open`."""
        recorder, self._recorder = self._recorder, None
        text = source.source_trace(cell)
        if recorder is None:
            return text
        return replace(
            text,
            backwards=tuple(self._backwards.facts),
            steps=tuple(self._steps.facts),
            forwards=self._forwards.facts(),
            modes=tuple(self._forwards.modes),
            clears=tuple(self._steps.clears.values()),
            loaders=self._loaders.facts(),
            emptied=self._emptied.facts(),
            checkpoints=self._checkpoints.facts(),
            counts=recorder.counts() + self._forwards.counts(),
            graph_nodes_made=private.sequence_number() - self._nodes_before,
        )

    def snapshot(
        self, names: Mapping[str, Any], history: Mapping[Any, Any], cell: Cell, budget_s: float, *, full: bool
    ) -> Snapshot:
        """What holds now."""
        called = self._forwards.called()
        look = Look(
            names, history, perf_counter() + budget_s, self._nodes_before, full, called, cell.code, cell.line_offset
        )
        taken = self._snapshots.take(look, cell.number)
        graphs, pins = taken.graphs, taken.pins
        with self._failures.guard("growth"):
            graphs = with_places(graphs, self._files(cell))
            pins = with_lines(pins, self._files(cell)[0]) if pins else ()
        return replace(taken, graphs=graphs, pins=pins)

    def memory(self) -> tuple[MemoryFact, ...]:
        """Memory of the process and of every accelerator in use."""
        return memory_facts(torch)

    def so_far(self) -> Trace:
        """Steps and backward calls of the running cell; may be asked from another thread."""
        recorder = self._recorder
        if recorder is None:
            return Trace()
        backwards, steps = tuple(self._backwards.facts), tuple(self._steps.facts)
        return Trace(backwards=backwards, steps=steps, counts=recorder.counts())

    def step_count(self) -> int:
        """Optimizer steps of the cell so far; may be asked from another thread."""
        return self._steps.count()

    def error(self, error: BaseException) -> ErrorFact:
        """What is known of the exception that ended the cell."""
        return error_fact(error, self._places)

    def _files(self, cell: Cell) -> list[CodeFile]:
        """Code of the cell, then of every cell whose functions it may have called, latest first."""
        return [CodeFile(cell.number, cell.line_offset, cell.code), *self._places.latest()]
