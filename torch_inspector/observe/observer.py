"""Everything that watches torch during one cell, opened and closed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import thread_time
from typing import Any

import torch

from torch_inspector.facts import (
    BuiltFact,
    Cell,
    DiscardFact,
    ErrorFact,
    ExpressionFact,
    ForwardFact,
    IndexingFact,
    MemoryFact,
    Shape,
    Snapshot,
    Trace,
    UnheldFact,
)
from torch_inspector.failures import Failures
from torch_inspector.observe import expressions, others, private, refusals, source
from torch_inspector.observe.anchors import Anchors
from torch_inspector.observe.attention import Attention
from torch_inspector.observe.backward import BackwardWatch
from torch_inspector.observe.budget import Budget
from torch_inspector.observe.built import built_facts
from torch_inspector.observe.checkpoints import CheckpointWatch
from torch_inspector.observe.clears import ClearWatch
from torch_inspector.observe.counted import CountWatch
from torch_inspector.observe.discards import discard_facts
from torch_inspector.observe.emptied import EmptiedWatch
from torch_inspector.observe.errors import error_fact
from torch_inspector.observe.forwards import ForwardWatch
from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.judges import JUDGES
from torch_inspector.observe.kept_weights import KeptWeights
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.ledger import Ledger
from torch_inspector.observe.loaders import LoaderWatch
from torch_inspector.observe.lost import LostHistories
from torch_inspector.observe.memory import memory_facts
from torch_inspector.observe.namesakes import namesakes
from torch_inspector.observe.numbered import numbered_facts
from torch_inspector.observe.pinned import with_lines
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.reading import Reading
from torch_inspector.observe.recorder import Recorder
from torch_inspector.observe.repeated import with_texts
from torch_inspector.observe.retained import with_places
from torch_inspector.observe.saved import hooked
from torch_inspector.observe.scaling import ScalingWatch
from torch_inspector.observe.snapshot import Look, Snapshots
from torch_inspector.observe.steps import StepWatch
from torch_inspector.observe.strangers import strangers
from torch_inspector.observe.uncollected import uncollected
from torch_inspector.observe.unheld import UnheldWatch
from torch_inspector.observe.unlisted import with_lines as with_class_lines
from torch_inspector.observe.versions import counted_changes
from torch_inspector.observe.windows import windows
from torch_inspector.observe.wrapper import Patch
from torch_inspector.observe.zero_divided import zero_divided

_Watch = (
    ForwardWatch
    | BackwardWatch
    | StepWatch
    | ClearWatch
    | CountWatch
    | LoaderWatch
    | EmptiedWatch
    | CheckpointWatch
    | ScalingWatch
)


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
        self._forwards.new_model = self._attention.look_into_graphs
        self._unheld = UnheldWatch(self._ledger)
        self._backwards = BackwardWatch(self._attention, self._ledger, self._reader, self._forwards, self._unheld)
        self._values = self._backwards.values
        self._kept_weights, self._anchors = KeptWeights(), Anchors()
        self._steps = StepWatch(self._attention, self._ledger, self._forwards, self._unheld)
        self._clears = ClearWatch(self._attention, self._ledger)
        self._scaling = ScalingWatch(self._attention, self._ledger)
        self._counted = CountWatch(self._ledger, self._scaling)
        self._loaders = LoaderWatch(self._steps.count)
        self._emptied = EmptiedWatch()
        self._checkpoints = CheckpointWatch()
        self._snapshots = Snapshots(self._keys, self._ledger, self._reader, failures, places)
        self._snapshots.values = self._values
        self._snapshots.states = self._forwards.states
        self._recorder: Recorder | None = None
        self._nodes_before = 0
        self._before: tuple[dict[str, Shape], dict[str, tuple[int, int]]] = ({}, {})
        """Shapes of the user's tensors after the last cell."""
        self._lost = LostHistories(places, self._keys, self._ledger, failures)
        self.install()

    def install(self) -> None:
        """Puts all wrappers in place."""
        for install in (*(patch.install for patch in self._patches()), self._steps.install, hooked.install):
            with self._failures.guard("install"):
                install()
        with self._failures.guard("compiler"):
            private.skip_package("torch_inspector.observe")
            private.skip_package("torch_inspector.failures")
            private.tell_dynamo()

    def remove(self) -> None:
        """Puts everything back that was wrapped."""
        self.close()
        for remove in (hooked.remove, self._steps.remove, *(patch.remove for patch in reversed(self._patches()))):
            with self._failures.guard("remove"):
                remove()
        with self._failures.guard("compiler"):
            private.tell_dynamo()

    def _patches(self) -> list[Patch]:
        return [patch for watch in self._watches() for patch in watch.patches]

    def _watches(self) -> tuple[_Watch, ...]:
        watches = self._forwards, self._backwards, self._steps, self._clears, self._counted, self._loaders
        return *watches, self._emptied, self._checkpoints, self._scaling

    def open(self, budget_s: float) -> None:
        """Begins to record a cell."""
        self.close()
        recorder = Recorder(self._places, self._keys, Budget(budget_s), self._failures)
        self._recorder = recorder
        with self._failures.guard("open"):
            for watch in self._watches():
                watch.open(recorder)
            self._unheld.open(recorder)
            self._attention.begin(recorder.thread)
        self._nodes_before = private.sequence_number()

    def foresee(self, cell: Cell, names: Mapping[str, Any]) -> None:
        """Looks at what the cell that begins is going to delete."""
        if self._recorder is not None:
            self._recorder.wants_report = cell.wants_report
        with self._failures.guard("foresee"):
            self._snapshots.foresee(names, cell)

    def close(self) -> None:
        """Records no more."""
        self._attention.end()
        for watch in self._watches():
            with self._failures.guard("close"):
                watch.close()

    def trace(self, cell: Cell) -> Trace:
        """What happened since `open`; asked before all else at the end of a cell."""
        others.let_them_begin()
        recorder, self._recorder = self._recorder, None
        text = source.source_trace(cell)
        if recorder is None or (not recorder.is_whole() and self._ledger.forget()):
            return text
        counts = recorder.counts() + self._forwards.counts()
        forwards = self._forwards.facts()
        self._lost.remember(forwards)
        backwards, steps = tuple(self._backwards.facts), tuple(self._steps.facts)
        return replace(
            text,
            windows=tuple(windows(self._steps.facts, self._backwards.facts, counts, self._files(cell))),
            backwards=backwards,
            steps=steps,
            forwards=forwards,
            modes=tuple(self._forwards.modes),
            loads=tuple(self._forwards.states.loads),
            clears=tuple(self._clears.facts.values()),
            loaders=self._loaders.facts(),
            emptied=self._emptied.facts(),
            checkpoints=self._checkpoints.facts(),
            schedules=self._counted.schedules.facts(recorder),
            losses=tuple(self._values.losses),
            clips=tuple(self._scaling.clips),
            scalers=self._scaling.scalers(),
            counts=counts,
            unheld=self._unheld_facts(cell),
            cuts=self._lost.cuts(forwards, backwards, steps),
            constants=self._lost.constants(backwards),
            added=self._lost.added(backwards),
            built=self._layers_built(cell, forwards),
            graph_nodes_made=private.sequence_number() - self._nodes_before,
        )

    def _layers_built(self, cell: Cell, forwards: tuple[ForwardFact, ...]) -> tuple[BuiltFact, ...]:
        """Layers that the text makes while a model runs, if the parameters in the graph were others each time."""
        fresh = self._unheld.fresh
        if not fresh or not all(fresh):
            return ()
        with self._failures.guard("built"):
            return tuple(built_facts(self._files(cell), {call.kind for call in forwards}, min(fresh), len(fresh) + 1))
        return ()

    def _unheld_facts(self, cell: Cell) -> tuple[UnheldFact, ...]:
        """Parameters that no optimizer holds; those in plain containers with the line that fills the container."""
        files = self._files(cell) if self._unheld.facts else []
        return tuple(
            fact._replace(unlisted=next(iter(with_class_lines([fact.unlisted], files)))) if fact.unlisted else fact
            for fact in self._unheld.left()
        )

    def snapshot(
        self, names: Mapping[str, Any], history: Mapping[Any, Any], cell: Cell, budget_s: float, *, full: bool
    ) -> Snapshot:
        """What holds now."""
        called = self._forwards.called()
        look = Look(
            names, history, thread_time() + budget_s, self._nodes_before, full, called, cell.code, cell.line_offset
        )
        taken = self._snapshots.take(look, cell.number)
        graphs, pins = taken.graphs, taken.pins
        with self._failures.guard("growth"):
            graphs = with_places(graphs, self._files(cell))
            pins = with_lines(pins, self._files(cell)) if pins else ()
        discards: tuple[DiscardFact, ...] = ()
        numbered: frozenset[IndexingFact] = frozenset()
        told = self._expressions(names, cell, taken)
        with self._failures.guard("discards"), private.unseen():
            discards, indexings = discard_facts(cell, names), source.source_trace(cell).indexings
            numbered = numbered_facts(indexings, names)
            taken = replace(taken, strangers=strangers(taken.tensors, indexings, told, names))
        return replace(
            taken,
            graphs=graphs,
            pins=pins,
            grad_enabled=torch.is_grad_enabled(),
            anomaly=torch.is_anomaly_enabled(),
            discards=discards,
            numbered=numbered,
            severed=self._lost.severed(names),
            expressions=told,
            **self._built(taken, cell),
        )

    def _expressions(self, names: Mapping[str, Any], cell: Cell, taken: Snapshot) -> tuple[ExpressionFact, ...]:
        """What the text of the cell does to the values that its names have now."""
        file, before = CodeFile(cell.number, cell.line_offset, cell.code), self._before
        self._before = {one.path: one.shape for one in taken.tensors}, counted_changes(taken.tensors, names)
        if not self._failures.gave_up("expressions"):
            with self._failures.guard("expressions"), uncollected(), private.unseen():
                facts = self._forwards.facts, self._loaders.facts
                reading = Reading(file, self._places, names, before[0], *facts, before[1])
                files, steps = self._files(cell), self._steps.facts
                kept = (*self._kept_weights.found(names, files, steps),)
                kept = (*kept, *self._anchors.found(names, files, steps, {one.place for one in kept}))
                divided = zero_divided(reading, taken.extremes)
                return (*expressions.found(reading, JUDGES), *namesakes(names, files, steps), *kept, *divided)
        return ()

    def _built(self, taken: Snapshot, cell: Cell) -> dict[str, Any]:
        """What was found in the way modules are built, with the lines that do it; without a line it is not told."""
        with self._failures.guard("built"):
            unlisted = with_class_lines(taken.unlisted, self._files(cell)) if taken.unlisted else ()
            found = (*self._forwards.repeated, *taken.repeated)
            repeated = with_texts(found, self._files(cell)) if found else ()
            return {"unlisted": unlisted, "repeated": repeated}
        return {"unlisted": (), "repeated": ()}

    def memory(self) -> tuple[MemoryFact, ...]:
        """Memory of the process and of every accelerator in use."""
        return memory_facts(torch)

    def so_far(self) -> Trace:
        """Steps and backward calls of the running cell; may be asked from another thread."""
        recorder = self._recorder
        if recorder is None or not recorder.is_whole():
            return Trace()
        backwards, steps = tuple(self._backwards.facts), tuple(self._steps.facts)
        return Trace(backwards=backwards, steps=steps, counts=recorder.counts())

    def step_count(self) -> int:
        """Optimizer steps of the cell so far; may be asked from another thread."""
        return self._steps.count()

    def error(self, error: BaseException) -> ErrorFact:
        """What is known of the exception that ended the cell."""
        fact = error_fact(error, self._places)
        fact = self._lost.explained(fact, tuple(self._backwards.facts))
        if refusals.is_refusal(fact):
            with self._failures.guard("refusal"):
                fact = replace(fact, refusal=refusals.refusal_fact(error, fact, self._places, self._reader))
        return fact

    def _files(self, cell: Cell) -> list[CodeFile]:
        """Code of the cell, then of every cell whose functions it may have called, latest first."""
        return [CodeFile(cell.number, cell.line_offset, cell.code), *self._places.latest()]
