"""A schedule that is counted in epochs is stepped once per batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from torch_inspector.facts import Run, ScheduleFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# A loop over batches inside a loop over epochs.
_NESTED = 2
# Calls per optimizer step from which on the schedule follows batches; one per epoch is far below.
_PER_STEP_RATIO = 0.9
# Rate at the end over rate at the start: below the first, half of a steady decay ran with less than a thousandth of it;
# the second is enough where the decay comes in jumps that are shorter than an epoch, or with a factor made for epochs.
_DEAD_RATIO, _LOW_RATIO = 1e-6, 2e-3
# Somebody who counts batches in decays of this factor per call loses half of the rate in 20 of them. A factor with
# more digits was computed from a number of steps.
_EPOCH_GAMMA, _GAMMA_DIGITS = 0.97, 3
_GAMMA_FELL_RATIO = 0.01
_FELL_RATIO = 0.3
# A rate that is nearly the same as before is not told.
_SAME_RATIO = 0.99
# A period in batches is at least an epoch or so; one that fits this often into an epoch was meant otherwise.
_PERIODS = 2
_RESTARTS = 4
# Milestones in epochs are seldom beyond the first. All of several in the first epoch, and in the first third of the
# training, may be meant in batches: a hint.
_LAST_EPOCH, _FIRST_PART = 300, 3
_TOO_OFTEN = re.compile(r"Tried to step (\d+) times. The specified number of total steps is (\d+)")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds schedules whose numbers are epochs and whose calls are batches."""
    seen: set[tuple[int | None, int | None]] = set()
    for fact in run.trace.schedules:
        at = (fact.place.cell, fact.place.line) if _per_batch(fact) else None
        reason = _reason(run, fact) if at is not None and at not in seen else ""
        if at is not None and reason:
            seen.add(at)
            yield _finding(run, fact, reason)


def _per_batch(fact: ScheduleFact) -> bool:
    """True if one schedule is stepped with the optimizer in a loop inside a loop."""
    # Schedules made anew in each turn of a loop have that loop around them, but go through it once.
    depth = len(fact.turns) - (fact.siblings > 1)
    return depth >= _NESTED and 1 < fact.count >= _PER_STEP_RATIO * max(fact.optimizer_steps, 1)


def _reason(run: Run, fact: ScheduleFact) -> str:
    """What shows that its numbers are epochs; empty if nothing does."""
    epochs, batches = _epochs_and_batches(run, fact)
    if run.error is not None:
        return _too_often(run, fact, epochs)
    reason = _by_kind(fact, epochs, batches)
    if not reason and _fell(fact) < _DEAD_RATIO and _was_dead_early(fact):
        reason = "long before the last of them the learning rate had vanished"
    return reason


def _epochs_and_batches(run: Run, fact: ScheduleFact) -> tuple[int, int]:
    epochs = fact.turns[1] or 0
    counted = fact.count // epochs if epochs and run.error is None and fact.siblings == 1 else 0
    return epochs, fact.turns[0] or counted


def _too_often(run: Run, fact: ScheduleFact, epochs: int) -> str:
    told = _TOO_OFTEN.search(run.error.message) if run.error is not None else None
    if told is None or fact.setting("total_steps") != epochs:
        return ""
    return f"it was made for {epochs} steps, the number of epochs"


def _cosine(fact: ScheduleFact, epochs: int, batches: int) -> str:
    span = fact.setting("T_max")
    if span is None or span != epochs or fact.count < _PERIODS * span or span == batches:
        return ""
    return (
        f"`T_max={span:g}` is the number of epochs, so the rate went down and up again {_times(fact.count / 2 / span)}"
    )


def _restarts(fact: ScheduleFact, epochs: int, batches: int) -> str:
    span = fact.setting("T_0")
    if span is None or fact.told or not 0 < span <= epochs or span * _RESTARTS > batches:
        return ""
    return f"with `T_0={span:g}` it starts again {_times(batches / span)} in each epoch"


def _jumps(fact: ScheduleFact, epochs: int, batches: int) -> str:
    size = fact.setting("step_size")
    short = size is not None and 0 < size * _PERIODS <= max(batches, epochs if batches >= (size or 0) else 0)
    if size is None or not short or _fell(fact) > _LOW_RATIO**0.5:
        return ""
    return f"`step_size={size:g}` was over after {size:g} of the {batches or fact.count} batches of an epoch"


def _milestones(fact: ScheduleFact, epochs: int, batches: int) -> str:
    last = max(fact.milestones, default=0)
    told = _are_of_epochs(fact, epochs, batches) or _are_early(fact, batches)
    if not told or fact.count < last or _fell(fact) >= 1:
        return ""
    if last >= batches:
        return f"all its milestones, up to {last}, were passed after {last} batches"
    return f"all its milestones, up to {last}, lie within the {batches} batches of the first epoch"


def _are_of_epochs(fact: ScheduleFact, epochs: int, batches: int) -> bool:
    last = max(fact.milestones, default=0)
    early = 0 < last < batches and (last < epochs or last * _PERIODS <= batches)
    # Milestones in the second half of the epochs are passed where the training has hardly begun.
    return early or (last < epochs <= _PERIODS * last and last * _RESTARTS <= fact.count)


def _are_early(fact: ScheduleFact, batches: int) -> bool:
    """True if several milestones lie within the first epoch, and most of the training behind them."""
    last = max(fact.milestones, default=0)
    early = last < batches and last * _FIRST_PART <= fact.count
    return early and len(fact.milestones) > 1 and last <= _LAST_EPOCH


def _steady(fact: ScheduleFact, _: int, __: int) -> str:
    gamma = fact.setting("gamma")
    if gamma is None or not 0 < gamma <= _EPOCH_GAMMA or gamma != round(gamma, _GAMMA_DIGITS):
        return ""
    if _fell(fact) > _GAMMA_FELL_RATIO:
        return ""
    return f"`gamma={gamma:g}` is the factor of an epoch, and {fact.count} of them leave nothing to learn with"


def _to_the_end(fact: ScheduleFact, epochs: int, batches: int) -> str:
    span = fact.setting("total_iters")
    if (
        span is None
        or span != epochs
        or fact.count < _PERIODS * span
        or span == batches
        or not _fell(fact) < _FELL_RATIO
    ):
        return ""
    return f"`total_iters={span:g}` is the number of epochs, so it was over after {span:g} batches"


def _plateau(fact: ScheduleFact, _: int, batches: int) -> str:
    patience = fact.setting("patience")
    if patience is None or patience * _PERIODS > max(batches, fact.count / _RESTARTS) or _fell(fact) >= 1:
        return ""
    return f"`patience={patience:g}` are batches then, whose losses differ by chance"


_BY_KIND: dict[str, Callable[[ScheduleFact, int, int], str]] = {
    "CosineAnnealingLR": _cosine,
    "CosineAnnealingWarmRestarts": _restarts,
    "StepLR": _jumps,
    "MultiStepLR": _milestones,
    "ExponentialLR": _steady,
    "PolynomialLR": _to_the_end,
    "LinearLR": _to_the_end,
    "ReduceLROnPlateau": _plateau,
}
"""What shows it for each kind, from the schedule, the epochs and the batches of an epoch; 0 where not known."""


def _by_kind(fact: ScheduleFact, epochs: int, batches: int) -> str:
    judge = _BY_KIND.get(fact.kind)
    return judge(fact, epochs, batches) if judge is not None else ""


def _fell(fact: ScheduleFact) -> float:
    """Learning rate at the end over that at the start; 1 if they are not known."""
    if not fact.first_rate or fact.last_rate is None:
        return 1.0
    return abs(fact.last_rate / fact.first_rate)


def _was_dead_early(fact: ScheduleFact) -> bool:
    """True if at most three quarters on the way the rate was far below its highest: some end at zero by design."""
    early = [rate for calls, rate in fact.rates if calls <= 0.75 * fact.count]
    return len(early) > 1 and early[-1] < _LOW_RATIO * max(early)


def _times(number: float) -> str:
    whole = round(number)
    return "once" if whole <= 1 else f"{whole} times"


def _finding(run: Run, fact: ScheduleFact, reason: str) -> Finding:
    name = fact.name or fact.kind
    rates = (("learning rate before", fact.first_rate), ("learning rate after", fact.last_rate))
    unsure = fact.kind == "MultiStepLR" and not _are_of_epochs(fact, *_epochs_and_batches(run, fact))
    change = f" The rate went from {fact.first_rate:.3g} to {fact.last_rate:.3g}." if _fell(fact) < _SAME_RATIO else ""
    return Finding(
        message=f"`{name}.step()` ran {fact.count} times, once per batch, but {_joined(fact, reason)}.{change}",
        subject=fact.path or name,
        fix=_fix(run, fact, name),
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint" if unsure else "",
        evidence=(
            Evidence("schedule", fact.kind),
            Evidence("calls of the schedule", fact.count, "count"),
            Evidence("optimizer steps", fact.optimizer_steps, "count"),
            *(Evidence(label, value) for label, value in fact.settings),
            *(Evidence(label, rate) for label, rate in rates if rate is not None),
        ),
    )


def _joined(fact: ScheduleFact, reason: str) -> str:
    epochs = fact.turns[1] if len(fact.turns) > 1 else None
    return f"{reason}; the loop has {epochs} epochs" if epochs and "epochs" not in reason else reason


def _fix(run: Run, fact: ScheduleFact, name: str) -> str:
    value = "(mean_loss)" if fact.kind == "ReduceLROnPlateau" else "()"
    after = f"{name}.step{value}  # after the loop over the batches, once per epoch"
    return after if run.error is None else f"{after}, or make it for epochs times batches"
