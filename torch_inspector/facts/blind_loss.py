"""Whether a loss has no history because a model that is to learn computed it while gradients were off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch_inspector.facts.bound_in import bound_in, is_a_number, lacked_gradients
from torch_inspector.facts.made_blind import Blind, made_blind

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

# What torch says when a loss has no history.
NO_HISTORY = "does not require grad and does not have a grad_fn"


def blind_loss(run: Run) -> Blind | None:
    """What a model gave while gradients were off, if a loss without history comes from there.

    Returns:
        None as well where the loss would have no history with gradients either, or for another reason first.
    """
    error = run.error
    if error is None or NO_HISTORY not in error.message or error.cuts + error.constants or is_a_number(run):
        return None
    made = made_blind(run) or _with_its_cell(run)
    off = made is not None and not (run.before if made.run is run else made.run.after).grad_enabled
    return made if made is not None and off and _could_learn(run, made) else None


def _with_its_cell(run: Run) -> Blind | None:
    """A loss that an earlier cell bound, however: all models that it called were called without gradients."""
    made = bound_in(run)
    calls = made.trace.forwards
    blind = bool(calls) and not any(call.output_requires_grad for call in calls)
    could_learn = lacked_gradients(made) and any(call.trainable_count for call in calls)
    return Blind(made, run.error.root if run.error else "") if made is not run and blind and could_learn else None


def _could_learn(run: Run, made: Blind) -> bool:
    """True if the model still wants gradients, and no other model is the reason: one that was called with them on."""
    frozen = frozenset[int]().union(*(one.frozen_keys for one in run.after.modules))
    blind = _keys(call for call in made.run.trace.forwards if call.trainable_count and not call.grad_enabled) - frozen
    others = _keys(_frozen_calls(run))
    held = frozenset[int]().union(*(one.parameter_keys for one in run.after.optimizers))
    return bool(blind) and (not others or (bool(held & blind) and not held & others))


def _frozen_calls(run: Run) -> list[ForwardFact]:
    """Calls, with gradients on, of models without a parameter that wants any, where the loss was computed."""
    calls = [call for call in run.trace.forwards if call.parameter_keys]
    calls = calls or [call for call in bound_in(run).trace.forwards if call.parameter_keys]
    return [call for call in calls if call.grad_enabled and not call.trainable_count]


def _keys(calls: Iterable[ForwardFact]) -> frozenset[int]:
    return frozenset[int]().union(*(call.parameter_keys for call in calls))
