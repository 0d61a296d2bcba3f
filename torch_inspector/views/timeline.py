"""The timeline of a cell: what was called in which order, how the losses went, and memory where it was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import CountFact, Place, Run
from torch_inspector.views.card import Part, Table
from torch_inspector.views.ledger import loss_table
from torch_inspector.views.phases import pace_table, phase_tables
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import count, seconds, size
from torch_inspector.views.words import line_name

_ROWS = 20
_LOSSES = 3
_DEVICES = 4
_NAME_LIMIT = 60
_PER_MILLE = 1_000
# Fewer looks at memory say no more than before and after.
_FEWEST_MOMENTS = 3
_MOST_POINTS = 60


class Call(NamedTuple):
    """Calls of one kind from one line."""

    order: int
    """Position of the first of them among all that happened."""
    kind: str
    place: Place
    what: str
    times: int


def timeline_parts(run: Run) -> list[Part]:
    """As much of it as was seen."""
    pace = pace_table(run)
    return [*_calls(run), *phase_tables(run), *([pace] if pace else []), *_losses(run), *_memory(run)]


def untold_counts(run: Run) -> list[CountFact]:
    """Calls that the timeline does not show."""
    told = {(call.kind, call.place) for call in _in_order(run)[:_ROWS]}
    return [fact for fact in run.trace.counts if (fact.kind, fact.place) not in told]


# calls -------------------------------------------------------------------------


def _calls(run: Run) -> list[Part]:
    """What was called, by the first call of each line. No bars: later calls are counted, but nobody knows when."""
    calls = _in_order(run)
    if not calls:
        return []
    rows = tuple(
        (clip(call.what, _NAME_LIMIT), line_name(call.place.line, call.place.cell, run.cell.number), count(call.times))
        for call in calls[:_ROWS]
    )
    of = f" ({_ROWS} of {count(len(calls))})" if len(calls) > _ROWS else ""
    return [Table(rows, ("call", "where", "times"), f"What happened, in order{of}", (2,))]


def _in_order(run: Run) -> list[Call]:
    found: dict[tuple[str, Place, str], Call] = {}
    for one in (*_forwards(run), *_training(run), *_modes(run)):
        key = (one.kind, one.place, one.what)
        old = found.get(key)
        found[key] = one if old is None else old._replace(order=min(old.order, one.order), times=old.times + one.times)
    return sorted((_counted(call, run) for call in found.values()), key=lambda call: call.order)


def _counted(call: Call, run: Run) -> Call:
    """With all calls of the line, of which the first ones were looked at."""
    if call.kind not in ("backward", "step", "zero_grad"):
        return call
    return call._replace(times=max(run.trace.count(call.kind, call.place), call.times))


def _forwards(run: Run) -> Iterator[Call]:
    for call in run.trace.forwards:
        name = run.name_of(call)
        mode = f"{'train' if call.training else 'eval'}{'' if call.grad_enabled else ', no grad'}"
        yield Call(call.order, "forward", call.place, f"{name}(…), {mode}", call.count)


def _training(run: Run) -> Iterator[Call]:
    for backward in run.trace.backwards:
        name = backward.root or "loss"
        what = f"grad({name})" if backward.is_grad_call else f"{name}.backward()"
        yield Call(backward.order, "backward", backward.place, what, 1)
    for step in run.trace.steps:
        name = run.optimizer_path(step.optimizer) or step.optimizer_kind
        yield Call(step.order, "step", step.place, f"{name}.step()", 1)
    for clear in run.trace.clears:
        name = run.optimizer_path(clear.owner) or run.module_path(clear.owner)
        yield Call(clear.order, "zero_grad", clear.place, f"{name}{'.' if name else ''}zero_grad()", clear.count)


def _modes(run: Run) -> Iterator[Call]:
    for call in run.trace.modes:
        name = run.module_path(call.module) or "model"
        yield Call(call.order, "mode", call.place, f"{name}.{'train' if call.training else 'eval'}()", 1)


# losses and memory -------------------------------------------------------------


def _losses(run: Run) -> Iterator[Part]:
    places = dict.fromkeys(loss.place for loss in run.trace.losses)
    tables = (loss_table(run, place) for place in places)
    yield from [table for table in tables if table is not None][:_LOSSES]


def _memory(run: Run) -> Iterator[Part]:
    devices = list(dict.fromkeys(moment.device for moment in run.moments))
    for device in devices[:_DEVICES]:
        course = [(moment.at_s, moment.nbytes) for moment in run.moments if moment.device == device]
        if len(course) >= _FEWEST_MOMENTS:
            yield _course(device, course, run.duration_s)


def _course(device: str, course: list[tuple[float, int]], duration_s: float) -> Table:
    """Memory of one device over the time of the cell; of many looks the highest of each group."""
    group = -(-len(course) // _MOST_POINTS)
    kept = [max(course[at : at + group], key=lambda one: one[1]) for at in range(0, len(course), group)]
    low, high = min(nbytes for _, nbytes in course), max(nbytes for _, nbytes in course)
    across, up = max(duration_s, course[-1][0], 1e-9), max(high - low, 1)
    at_peak = next(at for at, nbytes in course if nbytes == high)
    rows = (
        ("first look", size(course[0][1]), f"after {seconds(course[0][0])}"),
        ("highest", size(high), f"after {seconds(at_peak)}"),
        ("last look", size(course[-1][1]), f"after {seconds(course[-1][0])}"),
    )
    points = tuple((int(_PER_MILLE * at / across), _PER_MILLE * (nbytes - low) // up) for at, nbytes in kept)
    return Table(rows, caption=f"{device} memory over {seconds(duration_s)}", figures=(1,), curve=points)
