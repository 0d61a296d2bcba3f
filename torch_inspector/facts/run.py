"""One cell with everything that was seen of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from math import isfinite
from typing import TYPE_CHECKING

from torch_inspector.facts import bursts, part_names
from torch_inspector.facts.errors import ErrorFact
from torch_inspector.facts.graphs import BackwardFact, PatternFact
from torch_inspector.facts.growth import growth, is_of_other_cause
from torch_inspector.facts.optimizers import OptimizerFact, StepFact
from torch_inspector.facts.place import Cell, Place
from torch_inspector.facts.snapshot import Snapshot
from torch_inspector.facts.tensors import MomentFact
from torch_inspector.facts.text import ExpressionFact
from torch_inspector.facts.trace import Trace
from torch_inspector.facts.values import LossFact, SeriesFact, SpoiledFact

if TYPE_CHECKING:
    from torch_inspector.account import MemoryReport
    from torch_inspector.facts.forwards import ForwardFact, LoadFact
    from torch_inspector.findings import Finding

# Half of the smallest number of float16: what is below becomes 0.
_NOTHING = 2**-25


@dataclass(frozen=True)
class Run:
    """One cell with everything that was seen of it."""

    cell: Cell
    before: Snapshot = field(default_factory=Snapshot)
    trace: Trace = field(default_factory=Trace)
    after: Snapshot = field(default_factory=Snapshot)
    error: ErrorFact | None = None
    duration_s: float = 0.0
    inspection_s: float = 0.0
    """Seconds that the inspector itself took before and after the cell."""
    earlier: tuple[Run, ...] = ()
    """Runs before this one, oldest first; they hold no earlier ones themselves."""
    min_nbytes: int = 1 << 20
    """Memory findings below this many bytes stay silent."""
    account: MemoryReport | None = None
    """Who holds all memory; only where the cell ran out of it or asked for the report. Earlier runs have none."""
    findings: tuple[Finding, ...] = ()
    unjudged: frozenset[str] = frozenset()
    """Pitfalls without findings of which nobody knows: muted, failed, silenced by a comment, or told by another one."""

    moments: tuple[MomentFact, ...] = ()
    """Memory while the cell ran; only where somebody looked at it in between and the report was asked for."""

    def backward_before(self) -> BackwardFact | None:
        """The backward call before the one that failed: the one on the same graph, or else the latest."""
        refusal, error = self.error.refusal if self.error else None, self.error
        if refusal is None or error is None:
            return None
        own = list(self.trace.backwards)
        if own and own[-1].place == error.place and own[-1].number == refusal.number:
            own.pop()
        calls = [call for run in self.earlier for call in run.trace.backwards] + own
        same = [call for call in calls if call.number == refusal.number >= 0]
        return (same or calls)[-1] if calls else None

    def steps_by_optimizer(self) -> dict[int, list[StepFact]]:
        """Steps of this cell by key of the optimizer."""
        return self.trace.steps_by_optimizer

    def odd_steps(self, optimizer: int) -> list[StepFact]:
        """Steps of an optimizer that follow none or several backward calls, that others reached, or that go uphill."""
        return self.trace.odd_steps.get(optimizer, [])

    def squashing_layers(self, kind: str) -> tuple[str, ...]:
        """Paths of layers of one such kind in the modules that were called in this cell, each once."""
        called = {call.module for call in self.trace.forwards}
        modules = [module for module in self.after.modules if module.key in called]
        found = (path for module in modules for path, own, _ in module.squashing_layers if own == kind)
        return tuple(dict.fromkeys(found))

    def losses_with(self, name: str) -> tuple[tuple[PatternFact, str, Place], ...]:
        """Patterns of one name, with the loss whose graph has them and the line that made it, each line once.

        Losses that nothing was called on count too, if the cell made them; a container of others, now spent, does not.
        """
        looked = [(b.witness.patterns, b.root, b.made_at) for b in self.trace.patterned if b.witness is not None]
        told = any(p.name == name for patterns, *_ in looked for p in patterns)
        lone = (g for g in self.after.graphs if g.scalar and not (told and g.container and g.spent))
        kept = [(g.patterns, g.path, g.made_at) for g in lone if g.made_at is not None]
        found: dict[Place, tuple[PatternFact, str, Place]] = {}
        for patterns, root, place in (*looked, *kept):
            pattern = next((p for p in patterns if p.name == name), None)
            if pattern is not None and place is not None and place not in found:
                found[place] = (pattern, root, place)
        return tuple(found.values())

    def expressions(self, kind: str) -> tuple[ExpressionFact, ...]:
        """Expressions of one kind that the cell came to, each line once."""
        failed = self.error.place if self.error is not None else None
        found: dict[Place, ExpressionFact] = {}
        for fact in self.after.expressions:
            late = (
                failed is not None and failed.cell == fact.place.cell and (failed.line or 0) <= (fact.place.line or 0)
            )
            if fact.kind == kind and not late:
                found.setdefault(fact.place, fact)
        return tuple(found.values())

    def operand_of(self, pattern: PatternFact) -> str:
        """The variable that was given to a loss: as the code calls it, or the only one that could be; else empty."""
        made = (pattern.nodes[-1:], pattern.shapes[:1])
        fitting = [t.path for t in self.after.tensors if ((t.made_by,), (t.shape,)) == made]
        return pattern.operands[0] if pattern.operands else fitting[0] if len(fitting) == 1 else ""

    def module_path(self, key: int) -> str:
        """What the user can type to get this module, or its class if no variable leads to it; empty if unknown."""
        fact = self.after.module(key) or self.before.module(key)
        if fact is not None and fact.path:
            return fact.path
        return self._path_inside(key) or (fact.kind if fact is not None else "")

    def path_of(self, call: ForwardFact | LoadFact) -> str:
        """What the user can type to get the module of a call; else what the code there calls it, or its class."""
        return self.module_path(call.module) or call.name or call.kind

    def name_of(self, call: ForwardFact | LoadFact) -> str:
        """What the code at a call calls its module; else what the user can type to get it, or its class."""
        return call.name or self.module_path(call.module) or call.kind

    def _path_inside(self, key: int) -> str:
        """Path of a module that was called as a part of one with a name: `ae.encoder`, told by its parameters."""
        call = next((one for one in self.trace.forwards if one.module == key), None)
        own = call.parameter_keys if call is not None else frozenset[int]()
        for whole in (*self.after.modules, *self.before.modules):
            if not whole.path or not own or not own < whole.parameter_keys:
                continue
            names = [name.split(".")[:-1] for one, name in whole.parameter_names if one in own]
            shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*names, strict=False))]
            every = [(one, name.split(".")) for one, name in whole.parameter_names]
            starts = [shared[:count] for count in range(1, len(shared) + 1)]
            fit = [start for start in starts if {one for one, parts in every if parts[: len(start)] == start} == own]
            # Of a part and the only one in it that has parameters, the name in the code tells, or else it is the whole.
            word = call.name.rpartition(".")[2] if call is not None else ""
            best = next((start for start in fit if start[-1] == word), next(iter(fit), []))
            if best:
                return whole.path + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in best)
        return ""

    def parameter_path(self, key: int) -> str:
        """What the user can type to get this parameter; empty if no variable leads there."""
        return part_names.parameter_path(self, key)

    def owner_path(self, keys: frozenset[int]) -> str:
        """The first named module that has some of these parameters, or the variable that is one; empty if unknown."""
        owners = [module.path for module in self.after.modules if module.path and module.parameter_keys & keys]
        called = [call.name for call in self.trace.forwards if call.name and call.parameter_keys & keys]
        tensors = [tensor.path for tensor in self.after.tensors if tensor.key in keys]
        return next(iter((*owners, *called, *tensors)), "")

    def divergence(self) -> tuple[float, float] | None:
        """A loss that grew at least tenfold before it was not finite any more, or without end: first and last value."""
        if not self.trace.losses and self.bad_series() is None:
            return None
        if any(step.maximizes for steps in self.trace.odd_steps.values() for step in steps):
            return None
        ends = bool(self.after.failed_weights)
        listed = self.bad_series()
        if listed is not None and (pair := growth(listed.first, listed.last, index=listed.count, ended=True)):
            return pair
        for losses in self.trace.losses_by_place.values():
            finite = [loss.value for loss in losses if isfinite(loss.value)]
            if finite and finite[-1] >= finite[0] and finite == sorted(finite):
                ended = ends or len(finite) < len(losses)
                pair = growth(finite[0], finite[-1], index=losses[-1].index, ended=ended)
                if pair and not is_of_other_cause(losses, pair[1]):
                    return pair
        return None

    def nonfinite_cause(self) -> str:
        """What was not finite first: `clip`, `gradient`, `weights`, `loss`, or `rate` if the loss grew until then.

        Empty if all that was looked at is finite, or if a loss scaler deals with it.
        """
        return self._nonfinite_cause

    @cached_property
    def _nonfinite_cause(self) -> str:
        if not self._stays_nonfinite():
            return ""
        spoiled = self.trace.spoiled_loss is not None
        if self.trace.scales() and not self.after.failed_weights:
            return ""
        if spoiled:
            return "clip" if any(clip.spreads() for clip in self.trace.clips) else "gradient"
        return self._late_cause()

    def _late_cause(self) -> str:
        """The same where every gradient that was looked at is finite."""
        bad = self.first_nonfinite_loss()
        if bad is not None and bad.spoiled_weights and bad is self.trace.losses[0]:
            return "weights"
        if self.divergence() is not None:
            return "rate" if bad or self.after.failed_weights or self.bad_series() else ""
        if self.burst() is not None:
            return "rate"
        if bad is not None or self.bad_series() is not None:
            return "loss"
        return "weights" if self.after.failed_weights else ""

    def burst(self) -> tuple[LossFact, LossFact] | None:
        """The last finite loss and the next one, which is not, where the steps between made the weights huge."""
        return bursts.burst(self)

    def bad_series(self) -> SeriesFact | None:
        """A list of losses that ends in NaN or infinity; other lists may, where weights and losses are finite."""
        seen = bool(self.after.failed_weights) or self.first_nonfinite_loss() is not None
        named = (one for one in self.after.series if seen or (not self.trace.losses and "loss" in one.path.lower()))
        return next((one for one in named if one.first_bad is not None), None)

    def _stays_nonfinite(self) -> bool:
        """True unless whatever was not finite was skipped: a bad batch, a step without effect."""
        if self.after.failed_weights or self.bad_series() is not None:
            return True
        asks = "isfinite" in self.cell.code or "isnan" in self.cell.code
        last = self.trace.losses[-1].value if self.trace.losses else 0.0
        return not asks and (not isfinite(last) or not self.trace.steps)

    def graph_in_half(self, loss: LossFact) -> bool:
        """True if the graph of a loss computed in float16."""
        return any(backward.place == loss.place for backward in self.trace.halves)

    def lost_eps(self, backward: BackwardFact) -> OptimizerFact | None:
        """The optimizer of weights in float16, if what it adds to the divisor is nothing there."""
        leaves = backward.leaf_keys
        mine = (one for one in self.after.optimizers if one.parameter_keys & leaves)
        return next((one for one in mine if one.path and one.eps is not None and 0 < one.eps <= _NOTHING), None)

    def without_eps(self, spoiled: tuple[SpoiledFact, ...]) -> OptimizerFact | None:
        """The optimizer of spoiled weights whose gradients were 0, if it adds nothing to its divisor: that is 0 / 0."""
        keys = frozenset(one.key for one in spoiled if one.without_gradient)
        return next(
            (one for one in self.after.optimizers if one.eps == 0 and one.path and one.parameter_keys & keys), None
        )

    def first_nonfinite_loss(self) -> LossFact | None:
        """The first loss that was looked at and was not finite."""
        return self.trace.first_nonfinite_loss

    def underflowed(self) -> tuple[LossFact, ...]:
        """Losses in float16 that are not zero and left gradients which are zero everywhere, if all of them did."""
        if not self.trace.halves:
            return ()
        losses = [loss for loss in self.trace.losses if loss.gradient_count and self.graph_in_half(loss)]
        empty = [loss for loss in losses if loss.zero_gradients == loss.gradient_count and loss.value]
        return tuple(empty) if len(empty) == len(losses) else ()

    def overflowed(self) -> bool:
        """True if a loss in float16 was not finite, its weights and inputs were, and no operation is to blame."""
        loss = self.first_nonfinite_loss() if self.nonfinite_cause() == "loss" else None
        if loss is None or loss.spoiled_weights or not self.graph_in_half(loss):
            return False
        given = loss.given == "nan" or any(not one.computed for one in loss.origins)
        refused = loss.operation is not None and bool(loss.operation.cause)
        return not given and not refused

    def source_of(self, cell: int | None) -> str:
        """Text of this cell or an earlier one; empty if it is not known."""
        known = (one.cell.source for one in (self, *reversed(self.earlier)) if one.cell.number == cell)
        return next(known, "")

    def optimizer_path(self, key: int) -> str:
        """What the user calls this optimizer, globally or where it steps; empty if it has no name."""
        fact = self.after.optimizer(key) or self.before.optimizer(key)
        if fact is not None and fact.path:
            return fact.path
        return next((step.name for step in self.trace.steps if step.optimizer == key and step.name), "")

    def optimizer_name_at(self, key: int, place: Place) -> str:
        """What the code at a place calls it: `self.optimizer` in the method that steps it; else its path."""
        own = (step for step in self.trace.steps if step.optimizer == key and step.name and place.function)
        here = (step.name for step in own if step.place.scope == place.scope)
        lines = self.source_of(place.cell).splitlines()
        text = lines[place.line - 1] if place.function and place.line and place.line <= len(lines) else ""
        written = (step.name for step in self.trace.steps if step.optimizer == key and step.place.cell == place.cell)
        said = next((name for name in written if name.startswith("self.") and f"{name}." in text), "")
        return next(here, "") or said or self.optimizer_path(key)
