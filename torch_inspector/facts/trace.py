"""What happened while a cell ran."""

from __future__ import annotations

from dataclasses import dataclass

from torch_inspector.facts.calls import CheckpointFact, CountFact, EmptiedFact, LoaderFact
from torch_inspector.facts.forwards import BuiltFact, ForwardFact, LoadFact, ModeFact
from torch_inspector.facts.graphs import BackwardFact, CutFact
from torch_inspector.facts.optimizers import ClearFact, StepFact, UnheldFact, WindowFact
from torch_inspector.facts.place import Place
from torch_inspector.facts.schedules import ClipFact, ScalerFact, ScheduleFact
from torch_inspector.facts.text import (
    CallFact,
    CopyFact,
    DataEditFact,
    GradReadFact,
    IndexingFact,
    LoopFunctionFact,
    MentionFact,
    RebindFact,
)
from torch_inspector.facts.values import LossFact


@dataclass(frozen=True)
class Trace:
    """What happened while the cell ran, in order."""

    backwards: tuple[BackwardFact, ...] = ()
    steps: tuple[StepFact, ...] = ()
    forwards: tuple[ForwardFact, ...] = ()
    modes: tuple[ModeFact, ...] = ()
    clears: tuple[ClearFact, ...] = ()
    loaders: tuple[LoaderFact, ...] = ()
    counts: tuple[CountFact, ...] = ()
    emptied: tuple[EmptiedFact, ...] = ()
    checkpoints: tuple[CheckpointFact, ...] = ()
    loop_functions: tuple[LoopFunctionFact, ...] = ()
    calls: tuple[CallFact, ...] = ()
    indexings: tuple[IndexingFact, ...] = ()
    graph_nodes_made: int = 0
    """Autograd nodes that this thread made while the cell ran."""
    schedules: tuple[ScheduleFact, ...] = ()
    clips: tuple[ClipFact, ...] = ()
    scalers: tuple[ScalerFact, ...] = ()
    losses: tuple[LossFact, ...] = ()
    windows: tuple[WindowFact, ...] = ()
    unheld: tuple[UnheldFact, ...] = ()
    built: tuple[BuiltFact, ...] = ()
    cuts: tuple[CutFact, ...] = ()
    """Where the text loses the history of a loss; looked for only where a backward call did not reach a model."""

    def steps_come_first(self, optimizer: int) -> bool:
        """True if an optimizer's steps come between the forward pass and the backward call that it is made for."""
        first = next((step for step in self.steps if step.optimizer == optimizer), None)
        if first is None or first.index != 1 or first.has_closure:
            return False
        mine = [b for b in self.backwards if b.witness is not None and b.witness.leaf_keys & first.parameter_keys]
        late = [b for b in mine if optimizer in b.stale and b.order > first.order]
        return bool(late) and late == mine

    rebinds: tuple[RebindFact, ...] = ()
    grad_reads: tuple[GradReadFact, ...] = ()
    copies: tuple[CopyFact, ...] = ()
    data_edits: tuple[DataEditFact, ...] = ()
    mentions: tuple[MentionFact, ...] = ()
    loads: tuple[LoadFact, ...] = ()

    def training_places(self) -> frozenset[Place]:
        """Lines of the steps and backward calls that were looked at."""
        return frozenset({step.place for step in self.steps} | {backward.place for backward in self.backwards})

    def feeds_training(self, call: ForwardFact) -> bool:
        """True if the innermost loop that both calls and trains calls first: `fake = net(z)`, then the step.

        Evaluation comes after the steps of its loop, or in a function of its own.
        """
        places = self.training_places()
        for here, loops in call.callers:
            lines = [p.line for p in places if (p.cell, p.function) == (here.cell, here.function)]
            for first, last in loops:
                inside = [line for line in lines if line is not None and first <= line <= last]
                if inside and here.line is not None:
                    return any(line > here.line for line in inside)
        return False

    def count(self, kind: str, place: Place | None = None) -> int:
        """Calls of one kind in the whole cell, or from one line of it."""
        return sum(fact.count for fact in self.counts if fact.kind == kind and place in (None, fact.place))
