"""What a run knows about the training behind a finding: its steps as a ledger, its losses as a line."""

from __future__ import annotations

from math import isfinite, log10

from torch_inspector.facts import LossFact, Place, Run, StepFact
from torch_inspector.findings import Finding
from torch_inspector.views.card import Part, Table
from torch_inspector.views.quantity import count, several
from torch_inspector.views.words import line_name

# The first steps show what goes wrong; later ones repeat it.
_STEPS = 3
# Two values are told by the evidence; a line needs one more.
_FEWEST_LOSSES = 3
_MOST_POINTS = 40
_FRESH = "fresh"
_PER_MILLE = 1_000
# Beyond this, a straight scale shows one peak and nothing else.
_STEEP = 1_000


def ledger_parts(finding: Finding, run: Run | None) -> list[Part]:
    """A table of steps where the evidence counts steps, and a line of losses where the finding is about one."""
    if run is None:
        return []
    return [*_ledger(finding, run), *_losses(finding, run)]


# steps -------------------------------------------------------------------------


def _ledger(finding: Finding, run: Run) -> list[Part]:
    if not any("step" in fact.label for fact in finding.evidence):
        return []
    place = _step_place(finding, run)
    steps = [step for step in run.trace.steps if step.place == place]
    if all(step.backward_count == 1 and _used(step) == _FRESH for step in steps):
        return []
    total = run.trace.count("step", place)
    of = f" ({min(len(steps), _STEPS)} of {count(total)})" if total > min(len(steps), _STEPS) else ""
    rows = tuple(_row(step, finding.cell) for step in steps[:_STEPS])
    return [Table(rows, ("step", "backward", "cleared", "gradients used"), f"Steps{of}", (0, 1))]


def _step_place(finding: Finding, run: Run) -> Place | None:
    """The line of the steps: the finding's own, or else its optimizer's; others may have had that name before."""
    places = dict.fromkeys(step.place for step in run.trace.steps)
    here = (place for place in places if place.line == finding.line and place.cell in (finding.cell, None))
    named = (step.place for step in run.trace.steps if run.optimizer_path(step.optimizer) == finding.subject)
    return next(here, None) or (next(named, None) if finding.subject else None)


def _row(step: StepFact, here: int | None) -> tuple[str, ...]:
    cleared = step.cleared_at or step.discarded_at
    where = "no" if cleared is None else line_name(cleared.line, cleared.cell, here) or "yes"
    return (count(step.index), count(step.backward_count), where, _used(step))


def _used(step: StepFact) -> str:
    if step.idle or step.empty_gradients or step.unreached:
        return "none"
    if step.discarded_count:
        return f"{several(step.discarded_count, 'backward call')} thrown away"
    return "old ones added" if step.kept_gradients else _FRESH


# losses ------------------------------------------------------------------------

_NAMES = ("first", "lowest", "highest", "last")


def _losses(finding: Finding, run: Run) -> list[Part]:
    place = _loss_place(finding, run)
    table = loss_table(run, place) if place is not None else None
    return [] if table is None else [table]


def loss_table(run: Run, place: Place) -> Table | None:
    """The losses that one line called `backward()` on, as a line; None for fewer than three and for equal ones."""
    losses = [loss for loss in run.trace.losses if loss.place == place][-_MOST_POINTS:]
    finite = [loss for loss in losses if isfinite(loss.value)]
    if len(finite) < _FEWEST_LOSSES or len({loss.value for loss in finite}) == 1:
        return None
    told = [losses[0], min(finite, key=_value), max(finite, key=_value), losses[-1]]
    # One that is two of these is told once.
    names = {id(one): [name for name, other in zip(_NAMES, told, strict=True) if other is one] for one in told}
    rows = tuple((", ".join(names[id(one)]), count(one.value), f"call {count(one.index)}") for one in _once(told))
    root = next((one.root for one in run.trace.backwards if one.place == place and one.root), "loss")
    values = [loss.value for loss in finite]
    steep = min(values) > 0 and max(values) / min(values) > _STEEP
    looked = "" if run.trace.count("backward", place) == len(losses) else ", as far as looked at"
    caption = f"{root}{looked}{', in powers of ten' if steep else ''}"
    heights = [log10(value) for value in values] if steep else [value / 2 for value in values]
    return Table(rows, caption=caption, figures=(1,), curve=_points([loss.index for loss in finite], heights))


def _once(told: list[LossFact]) -> list[LossFact]:
    return sorted({id(one): one for one in told}.values(), key=lambda one: one.index)


def _value(loss: LossFact) -> float:
    return loss.value


def _loss_place(finding: Finding, run: Run) -> Place | None:
    """The line of `backward()` of the loss whose values the evidence quotes, or that was not finite there."""
    quoted = {fact.value for fact in finding.evidence if "loss" in fact.label and isinstance(fact.value, float)}
    if quoted:
        return next((loss.place for loss in run.trace.losses if loss.value in quoted), None)
    here = (finding.cell, finding.line)
    spoiled = (loss.place for loss in run.trace.losses if loss.spoiled_gradients or not isfinite(loss.value))
    made = {one.place: (one.made_at.cell, one.made_at.line) for one in run.trace.backwards}
    return next((place for place in spoiled if here in ((place.cell, place.line), made.get(place))), None)


def _points(calls: list[int], heights: list[float]) -> tuple[tuple[int, int], ...]:
    """Points of the line, in thousandths: calls to the right, values upwards.

    Args:
        calls: Rising numbers.
        heights: Half of the largest float at most, so that their differences are numbers.
    """
    across, up = max(calls[-1] - calls[0], 1), max(heights) - min(heights)
    placed = [min(max((height - min(heights)) / up, 0), 1) if up else 0 for height in heights]
    return tuple(
        (_PER_MILLE * (call - calls[0]) // across, int(_PER_MILLE * height))
        for call, height in zip(calls, placed, strict=True)
    )
