"""What happened while a cell ran."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import NamedTuple

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


class _Told(NamedTuple):
    """Backward calls by what their graphs have to tell."""

    patterned: tuple[BackwardFact, ...]
    tabled: tuple[BackwardFact, ...]
    halves: tuple[BackwardFact, ...]
    leaf_sets: frozenset[frozenset[int]]
    stale: frozenset[int]
    carried: tuple[BackwardFact, ...]
    from_leaf: BackwardFact | None
    retains: bool


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
    constants: tuple[CutFact, ...] = ()
    """Gradients of inputs, taken without `create_graph`, that a loss adds up; the text is the call as it has to be."""
    added: tuple[CutFact, ...] = ()
    """Where the text makes a number of what comes from a model, and adds it to a loss that has a history."""

    def steps_come_first(self, optimizer: int) -> bool:
        """True if an optimizer's steps come between the forward pass and the backward call that it is made for."""
        steps = self.steps_by_optimizer.get(optimizer, [])
        first = next(iter(steps), None)
        if first is None or first.index != 1 or first.has_closure or optimizer not in self._told.stale:
            return False
        mine = [b for b in self.backwards if b.witness is not None and b.witness.leaf_keys & first.parameter_keys]
        late = [b for b in mine if optimizer in b.stale and b.order > first.order]
        # What another loss gives the same parameters, as that of a generator, was cleared if no step found a gradient.
        return bool(late) and (late == mine or all(step.idle for step in steps))

    rebinds: tuple[RebindFact, ...] = ()
    grad_reads: tuple[GradReadFact, ...] = ()
    copies: tuple[CopyFact, ...] = ()
    data_edits: tuple[DataEditFact, ...] = ()
    mentions: tuple[MentionFact, ...] = ()
    loads: tuple[LoadFact, ...] = ()

    # Made once for all rules: each of them looks for a few facts among what may be very many.

    @cached_property
    def steps_by_optimizer(self) -> dict[int, list[StepFact]]:
        """Steps by key of the optimizer."""
        steps = defaultdict[int, list[StepFact]](list)
        for step in self.steps:
            steps[step.optimizer].append(step)
        return dict(steps)

    @cached_property
    def odd_steps(self) -> dict[int, list[StepFact]]:
        """Steps that follow none or several backward calls, that others reached, or that go uphill, by optimizer."""
        odd: dict[int, list[StepFact]] = {}
        for one in self.steps:
            fed = one.backward_count > 1 or one.kept_gradients or one.unreached
            if fed or one.discarded_count or one.cleared_at or one.maximizes:
                odd.setdefault(one.optimizer, []).append(one)
        return odd

    @cached_property
    def _backwards_by_place(self) -> dict[Place, list[BackwardFact]]:
        found: dict[Place, list[BackwardFact]] = {}
        for backward in self.backwards:
            found.setdefault(backward.place, []).append(backward)
        return found

    def backwards_at(self, place: Place | None) -> list[BackwardFact]:
        """Backward calls from one line."""
        return self._backwards_by_place.get(place, []) if place is not None else []

    @cached_property
    def _told(self) -> _Told:
        """What graphs have to tell, found in one go."""
        patterned, tabled, halves, carried = [], [], [], []
        leaf_sets, stale = set[frozenset[int]](), set[int]()
        latest: frozenset[int] | None = None
        from_leaf, retains = None, False
        for one in self.backwards:
            seen = one.witness
            retains = retains or one.retain_graph
            if one.stale:
                stale.update(one.stale)
            if one.from_leaf and from_leaf is None:
                from_leaf = one
            if seen is None:
                continue
            if seen.leaf_keys is not latest:
                latest = seen.leaf_keys
                leaf_sets.add(latest)
            if seen.patterns:
                patterned.append(one)
            if seen.tables:
                tabled.append(one)
            if seen.float16_count > 0:
                halves.append(one)
            if seen.carried_count:
                carried.append(one)
        lists = tuple(patterned), tuple(tabled), tuple(halves)
        return _Told(*lists, frozenset(leaf_sets), frozenset(stale), tuple(carried), from_leaf, retains)

    @property
    def patterned(self) -> tuple[BackwardFact, ...]:
        """Backward calls in whose graph a pattern was found."""
        return self._told.patterned

    @property
    def from_leaf(self) -> BackwardFact | None:
        """The first backward call on a tensor without history."""
        return self._told.from_leaf

    @property
    def retains(self) -> bool:
        """True if a backward call keeps its graph."""
        return self._told.retains

    @property
    def tabled(self) -> tuple[BackwardFact, ...]:
        """Backward calls whose graph looks rows up in a large leaf."""
        return self._told.tabled

    @property
    def halves(self) -> tuple[BackwardFact, ...]:
        """Backward calls whose graph computes in float16."""
        return self._told.halves

    @property
    def carried(self) -> tuple[BackwardFact, ...]:
        """Backward calls that found an old gradient at a leaf."""
        return self._told.carried

    @property
    def leaf_sets(self) -> frozenset[frozenset[int]]:
        """Keys of the leaves that each backward call reached; calls that reached the same ones count once."""
        return self._told.leaf_sets

    @cached_property
    def reached(self) -> frozenset[int]:
        """Keys of all leaves that backward calls reached."""
        return frozenset[int]().union(*self.leaf_sets)

    @cached_property
    def first_nonfinite_loss(self) -> LossFact | None:
        """The first loss that was looked at and was not finite."""
        return next((loss for loss in self.losses if not isfinite(loss.value)), None)

    @cached_property
    def spoiled_loss(self) -> LossFact | None:
        """The first finite loss whose backward call left gradients that are not."""
        return next((loss for loss in self.losses if loss.spoiled_gradients), None)

    @cached_property
    def losses_by_place(self) -> dict[Place, list[LossFact]]:
        """Losses by the line of their backward call."""
        found: dict[Place, list[LossFact]] = {}
        for loss in self.losses:
            found.setdefault(loss.place, []).append(loss)
        return found

    def training_places(self) -> frozenset[Place]:
        """Lines of the steps and backward calls that were looked at."""
        return self._training_places

    @cached_property
    def _training_places(self) -> frozenset[Place]:
        return frozenset({step.place for step in self.steps} | {backward.place for backward in self.backwards})

    def feeds_training(self, call: ForwardFact) -> bool:
        """True if the innermost loop that both calls and trains calls first: `fake = net(z)`, then the step.

        Evaluation comes after the steps of its loop, or in a function of its own.
        """
        places = self.training_places()
        for here, loops in call.callers:
            lines = [p.line for p in places if p.scope == here.scope]
            for first, last in loops:
                inside = [line for line in lines if line is not None and first <= line <= last]
                if inside and here.line is not None:
                    return any(line > here.line for line in inside)
        return False

    @cached_property
    def _counts_by_kind(self) -> dict[str, list[CountFact]]:
        found = defaultdict[str, list[CountFact]](list)
        for fact in self.counts:
            found[fact.kind].append(fact)
        return dict(found)

    def count(self, kind: str, place: Place | None = None) -> int:
        """Calls of one kind in the whole cell, or from one line of it."""
        counts = self._counts_by_kind.get(kind, ())
        if place is None:
            return sum([fact.count for fact in counts])
        return sum([fact.count for fact in counts if place == fact.place])

    def calls_per_step(self) -> int:
        """Backward calls whose gradients are added up before a step: each may be of other rows or parts."""
        lines, steps = len({backward.place for backward in self.backwards}), self.count("step")
        counted = -(-self.count("backward") // steps) if steps else 0
        return max([lines, counted, *(step.backward_count for step in self.steps)])

    def scales(self) -> bool:
        """True if a loss scaler was used, and not one that is switched off in all of its steps."""
        off = self.count("scaler.off")
        is_on = not off or off < self.count("scaler.step")
        return is_on and any(kind.startswith("scaler.") for kind in self._counts_by_kind)
