"""The model that a loss was to teach, where its history is lost: not the teacher whose results it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch_inspector.facts.part_names import called_path

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run


def taught_path(run: Run, calls: list[ForwardFact], cuts: tuple[CutFact, ...]) -> str:
    """What was called, by its name there: of several models one that was to learn."""
    return called_path(run, taught(run, calls, cuts))


def taught(run: Run, calls: list[ForwardFact], cuts: tuple[CutFact, ...]) -> list[ForwardFact]:
    """Of calls of several models those of one that was to learn, as far as that is known.

    One that an optimizer holds, that gradients are on for, that no cut of fewer models stands behind, and that nothing
    else trains.
    """
    held = _held(run)
    wide = max((len(cut.sources) for cut in cuts), default=0)
    cut_off = {name for cut in cuts if len(cut.sources) < wide for name in cut.sources}
    wanted: tuple[Callable[[ForwardFact], bool], ...] = (
        lambda one: one.trainable_count > 0,
        lambda one: bool(one.parameter_keys & held),
        lambda one: one.grad_enabled,
        lambda one: one.name not in cut_off,
        lambda one: not one.parameter_keys & run.trace.reached,
    )
    for fits in wanted:
        calls = list(filter(fits, calls)) or calls
    return calls


def _held(run: Run) -> frozenset[int]:
    """Parameters that some optimizer holds."""
    known = (one.parameter_keys for one in (*run.after.optimizers, *run.before.optimizers))
    return frozenset[int]().union(*known, *(step.parameter_keys for step in run.trace.steps))
