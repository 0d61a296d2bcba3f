"""What holds at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from torch_inspector.facts.graphs import CutFact, GraphFact
from torch_inspector.facts.holders import CircleFact, DeletionFact, ElderFact, HolderFact, HookFact, TracebackFact
from torch_inspector.facts.modules import (
    AliasFact,
    AttributeFact,
    DiscardFact,
    HookCountFact,
    ModuleFact,
    RepeatedFact,
    UnlistedFact,
    UnsavedFact,
)
from torch_inspector.facts.optimizers import OptimizerFact
from torch_inspector.facts.tensors import MemoryFact, PinFact, TensorFact
from torch_inspector.facts.text import ExpressionFact, IndexingFact
from torch_inspector.facts.values import ExtremeFact, ResultFact, SeriesFact, SpoiledFact


@dataclass(frozen=True)
class Snapshot:
    """What held at one moment."""

    tensors: tuple[TensorFact, ...] = ()
    modules: tuple[ModuleFact, ...] = ()
    optimizers: tuple[OptimizerFact, ...] = ()
    graphs: tuple[GraphFact, ...] = ()
    holders: tuple[HolderFact, ...] = ()
    memory: tuple[MemoryFact, ...] = ()
    tracebacks: tuple[TracebackFact, ...] = ()
    pins: tuple[PinFact, ...] = ()
    elders: tuple[ElderFact, ...] = ()
    spoiled_weights: tuple[SpoiledFact, ...] = ()
    """Weights that are not finite, of optimizers and modules that were used in the cell."""
    extremes: tuple[ExtremeFact, ...] = ()
    """Variables in float16 that are new and not finite everywhere."""
    series: tuple[SeriesFact, ...] = ()
    """Lists of numbers, after a cell that trains."""
    results: tuple[ResultFact, ...] = ()
    """The first number that the cell computed and that is not finite."""
    complete: bool = True
    """False if the time budget ended the look: everything is then "at least"."""
    hooks: tuple[HookFact, ...] = ()
    deleted: tuple[DeletionFact, ...] = ()
    circles: tuple[CircleFact, ...] = ()
    expressions: tuple[ExpressionFact, ...] = ()
    """What the text of the cell does to the values that its names have now."""
    unlisted: tuple[UnlistedFact, ...] = ()
    repeated: tuple[RepeatedFact, ...] = ()
    numbered: frozenset[IndexingFact] = frozenset()
    """Indexings of the latest cell whose index is a number by the values that its names have now: views."""
    strangers: frozenset[tuple[int, int]] = frozenset()
    """Keys of tensors, with those of tensors like their copies whose rows are none of theirs, as far as is known."""
    grad_enabled: bool = True
    """False if autograd records nothing in what runs next."""
    attributes: tuple[AttributeFact, ...] = ()
    """Of modules that are new, or may have been moved or got an optimizer in the cell."""
    unsaved: tuple[UnsavedFact, ...] = ()
    """What loaded models that were called in the cell lack of those with the same weights."""
    discards: tuple[DiscardFact, ...] = ()
    """What the text of the latest cell throws away."""
    severed: tuple[CutFact, ...] = ()
    """Cuts that keep parts of named modules, or named parameters, from the losses of the latest cell."""
    aliases: tuple[AliasFact, ...] = ()
    hook_counts: tuple[HookCountFact, ...] = ()
    anomaly: bool = False
    """True if anomaly detection is on for what runs next."""

    @property
    def failed_weights(self) -> tuple[SpoiledFact, ...]:
        """The spoiled weights with which no loss was finite: numbers that nothing reads explain nothing."""
        return tuple(one for one in self.spoiled_weights if not one.unread)

    def module(self, key: int) -> ModuleFact | None:
        """The module with this key, if it was seen."""
        return next((m for m in self.modules if m.key == key), None)

    def optimizer(self, key: int) -> OptimizerFact | None:
        """The optimizer with this key, if it was seen."""
        return next((o for o in self.optimizers if o.key == key), None)
