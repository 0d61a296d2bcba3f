"""Phases of a cell along its time: how its models changed between train and eval, how many steps were done when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch_inspector.facts import ModeFact, Run
from torch_inspector.views.card import Table
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import count, seconds

_MODELS = 2
_NAME_LIMIT = 60
_PER_MILLE = 1_000
_MOST_POINTS = 60
# The begin, the end and one look between them are the least that makes a line.
_FEWEST_LOOKS = 3


class Phase(NamedTuple):
    """A model in one mode, in seconds of the cell."""

    training: bool
    began_s: float
    ended_s: float


def phase_tables(run: Run) -> Iterator[Table]:
    """Time in train and in eval mode, of the models that changed between them."""
    by_model: dict[int, list[ModeFact]] = {}
    for call in run.trace.modes:
        by_model.setdefault(call.module, []).append(call)
    known = [(run.module_path(model) or "model", _phases(calls, run.duration_s)) for model, calls in by_model.items()]
    both = [(name, phases) for name, phases in known if len(phases) > 1]
    yield from (_told(name, phases, run.duration_s) for name, phases in both[:_MODELS])


def _phases(calls: Sequence[ModeFact], duration_s: float) -> list[Phase]:
    """From the first call on: what came before it is not known from here."""
    ends = [*(call.at_s for call in calls[1:]), max(duration_s, calls[-1].at_s)]
    phases: list[Phase] = []
    for call, end in zip(calls, ends, strict=True):
        if phases and phases[-1].training == call.training:
            phases[-1] = phases[-1]._replace(ended_s=end)
        else:
            phases.append(Phase(call.training, call.at_s, end))
    return phases


def _told(name: str, phases: Sequence[Phase], duration_s: float) -> Table:
    rows = tuple(
        ("train" if training else "eval", count(len(own)), seconds(sum(one.ended_s - one.began_s for one in own)))
        for training in dict.fromkeys(phase.training for phase in phases)
        for own in [[phase for phase in phases if phase.training == training]]
    )
    across = max(duration_s, phases[-1].ended_s, 1e-9)
    points = tuple(
        (int(_PER_MILLE * at / across), _PER_MILLE * phase.training)
        for phase in phases
        for at in (phase.began_s, phase.ended_s)
    )
    caption = f"{clip(name, _NAME_LIMIT)} over {seconds(duration_s)}: train above, eval below"
    curve = points if len(points) <= _MOST_POINTS else ()
    return Table(rows, ("mode", "phases", "time"), caption, (1, 2), curve=curve)


def pace_table(run: Run) -> Table | None:
    """Optimizer steps along the time of the cell; None if nobody looked in between."""
    steps = run.trace.count("step")
    device = run.moments[0].device if run.moments else ""
    looks = [(one.at_s, one.steps) for one in run.moments if one.device == device and one.steps <= steps]
    course = [(0.0, 0), *looks, (run.duration_s, steps)]
    if not steps or len(course) < _FEWEST_LOOKS or run.duration_s <= 0:
        return None
    half = next(at for at, done in course if 2 * done >= steps)
    rows = (("half of them", f"after {seconds(half)}"), ("per second", count(round(steps / run.duration_s, 1))))
    kept = course[:: -(-len(course) // _MOST_POINTS)]
    points = tuple((int(_PER_MILLE * at / run.duration_s), _PER_MILLE * done // steps) for at, done in kept)
    caption = f"{count(steps)} optimizer step{'' if steps == 1 else 's'} over {seconds(run.duration_s)}"
    return Table(rows, caption=caption, figures=(1,), curve=points)
