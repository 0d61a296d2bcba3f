"""Learning rate schedules, gradient clips and loss scalers."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from torch_inspector.facts.place import Place


class ScheduleFact(NamedTuple):
    """One learning-rate schedule that was stepped."""

    order: int
    place: Place
    """Line of the first call of its `step()` in this cell."""
    schedule: int
    """Key of the schedule."""
    kind: str
    name: str
    """What the code that steps it calls it; empty if it has no name there."""
    path: str = ""
    """What the notebook calls it where that is another name: `trainer.schedule` for `self.schedule`."""
    optimizer: int = 0
    """Key of its optimizer; 0 if it has none."""
    optimizer_name: str = ""
    first_ever: bool = False
    """True if the first of these calls is the first of its life, and its optimizer was never told to step before."""
    told: bool = False
    """True if `step()` was given an argument: an epoch, or the value that a plateau is looked for in."""
    turns: tuple[int | None, ...] = ()
    """Turns that each loop around the call was going to make, the innermost first; None where that is not known."""
    settings: tuple[tuple[str, float], ...] = ()
    """`(("step_size", 30.0), ("gamma", 0.1))`."""
    milestones: tuple[int, ...] = ()
    count: int = 0
    """Calls in this cell."""
    step_counts: tuple[int, ...] = ()
    """Steps that its optimizer had made in this cell before the first three calls, those from `place` only."""
    optimizer_steps: int = 0
    """Steps that its optimizer made in this cell."""
    first_rate: float | None = None
    """Learning rate of the first group before the first call."""
    last_rate: float | None = None
    """The same at the end of the cell."""
    rates: tuple[tuple[int, float], ...] = ()
    """The same after 0, 1, 2, 3, 7, 15, … calls: `((0, 0.1), (1, 0.09))`."""
    siblings: int = 1
    """Schedules that were stepped from this line in this cell."""
    callers: tuple[Place, ...] = ()
    """Of the first call of its life: the user's lines that led to `place`, innermost first."""

    def setting(self, name: str) -> float | None:
        """What it was made with; None if it has no such setting."""
        return dict(self.settings).get(name)


class ClipFact(NamedTuple):
    """One call of `clip_grad_norm_` or `clip_grad_value_` that was looked at."""

    order: int
    place: Place
    function: str
    limit: float | None
    """What it clips to."""
    norm: float | None
    """The total norm that it returned; None if that lies on a device, or for a clip by value."""
    spoiled_keys: frozenset[int] = frozenset()
    """Parameters that it clipped and whose gradients were not finite before."""
    parameter_keys: frozenset[int] = frozenset()
    """All parameters of the optimizers whose gradients it changed."""
    scale: float = 0.0
    """Scale of the scaler whose `step` was given just these gradients, still scaled; 0 if there was none."""
    scaler_name: str = ""
    optimizer: int = 0
    """Key of the optimizer which that scaler stepped."""
    optimizer_name: str = ""
    step_place: Place = Place()
    """Where it did."""
    unscaled_late: bool = False
    """True if it was not `step` but a call of `unscale_` that found them still scaled."""
    names_there: tuple[tuple[str, str, Place], ...] = ()
    """What scaler and optimizer are called around the clip, and the innermost line where both have a name."""

    def spreads(self) -> bool:
        """True if the norm was not finite because of some gradients, and made all others so."""
        bad = self.norm is not None and not isfinite(self.norm)
        return bad and 0 < len(self.spoiled_keys) < len(self.parameter_keys)


class ScalerFact(NamedTuple):
    """Loss scalers that one line of this cell made, and which stepped one optimizer."""

    place: Place
    """The line that made them."""
    name: str
    step_place: Place
    """Where the first of them stepped the optimizer."""
    optimizer: int
    optimizer_name: str
    scaler_count: int = 1
