"""Watches learning-rate schedules: where they are stepped, against their optimizer's steps, and what the rate does."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ScheduleFact
from torch_inspector.observe import kinds, sorts
from torch_inspector.observe.callers import lines_outside
from torch_inspector.observe.groups import groups_of
from torch_inspector.observe.naming import from_outside, name_in, outer_name
from torch_inspector.observe.planned import planned_turns

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder, Site

# Calls of one schedule before which the steps of its optimizer are counted.
_FIRST_CALLS = 3
_RECORDS_KEPT = 64
# Optimizers that are remembered for the session.
_TRIED = 1_000
# Wrappers around wrappers that are looked into, and optimizers in one list of a wrapper.
_DEPTH = 3
_INNER = 16
_SORTS: dict[type[Any], str] = {list: "list", tuple: "tuple", dict: "mapping"}
_SETTINGS = (
    "step_size",
    "gamma",
    "T_max",
    "T_0",
    "total_iters",
    "total_steps",
    "start_factor",
    "end_factor",
    "patience",
)


class _Record:
    """One schedule in one cell."""

    __slots__ = ("calls", "fact", "first_rate", "looks", "optimizer", "rates", "ref", "site", "step_counts")

    def __init__(self, schedule: Any, site: Site, fact: ScheduleFact, optimizer: Any) -> None:
        self.ref = weakref.ref(schedule)
        self.site = site
        self.fact = fact
        self.optimizer = weakref.ref(optimizer) if optimizer is not None else None
        self.calls = 0
        self.first_rate = _rate(optimizer)
        self.rates: list[tuple[int, float]] = []
        self.step_counts: list[int] = []
        self.looks: list[tuple[int, int]] = []
        """Calls, and steps of the optimizer, at the first look and the latest."""

    def steps(self) -> int:
        """Steps of an optimizer that is gone, as for the calls that were looked at."""
        if len(self.looks) <= 1:
            return 0
        (first, before), (latest, after) = self.looks
        return round((after - before) * self.calls / (latest - first))


class Schedules:
    """Records one cell's schedules."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}
        self._all: list[_Record] = []
        self._tried: set[int] = set()

    def open(self) -> None:
        """Begins to record a cell."""
        self._records, self._all = {}, []

    def note_tried(self, recorder: Recorder, optimizer: Any) -> None:
        """Notes an optimizer that a loss scaler is asked to step, which it does not where gradients are inf."""
        if kinds.is_referable(optimizer) and len(self._tried) < _TRIED:
            with recorder.failures.guard("schedule"):
                if recorder.keys.of(optimizer) not in self._tried:
                    self._tried.update(recorder.keys.of(one) for one in (optimizer, *_wrapped(optimizer)))

    def note(self, recorder: Recorder, site: Site, schedule: Any, given: tuple[Any, ...], frame: FrameType) -> None:
        """Counts a call of `step` that is about to be made, and looks at the first ones and at every doubling."""
        record = self._records.get(id(schedule))
        if record is None or record.ref() is not schedule:
            if len(self._all) >= _RECORDS_KEPT:
                return
            with recorder.failures.guard("schedule"):
                self._begin(recorder, site, schedule, given, frame)
            return
        record.calls += 1
        if record.calls <= _FIRST_CALLS or not record.calls & (record.calls - 1):
            with recorder.failures.guard("schedule"):
                _look(record, recorder, site)

    def _begin(self, recorder: Recorder, site: Site, schedule: Any, given: tuple[Any, ...], frame: FrameType) -> None:
        fields = kinds.fields_of(schedule)
        optimizer = fields.get("optimizer")
        user = recorder.places.user_frame(frame)
        key = recorder.keys.of(optimizer) if optimizer is not None else 0
        stepped = kinds.fields_of(optimizer).get("_opt_called") is True or key in self._tried
        is_first = _is_new(fields) and not stepped
        fact = ScheduleFact(
            order=recorder.next_order(),
            place=site.place,
            schedule=recorder.keys.of(schedule),
            kind=kinds.class_name(schedule),
            name=(name := name_in(user, schedule)),
            path=_path(user, name, schedule),
            optimizer=key,
            optimizer_name=name_in(user, optimizer) if optimizer is not None else "",
            first_ever=is_first,
            callers=lines_outside(frame, recorder.places) if is_first else (),
            told=bool(given),
            turns=planned_turns(frame, recorder.places),
            settings=_settings(fields),
            milestones=_milestones(fields.get("milestones")),
        )
        record = _Record(schedule, site, fact, optimizer)
        self._records[id(schedule)] = record
        self._all.append(record)
        record.calls = 1
        _look(record, recorder, site)

    def facts(self, recorder: Recorder) -> tuple[ScheduleFact, ...]:
        """What is known at the end of the cell."""
        return tuple(_finished(record, recorder, self._siblings(record)) for record in self._all)

    def _siblings(self, record: _Record) -> int:
        return sum(other.site.place == record.site.place for other in self._all)


def _wrapped(optimizer: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The optimizers that another one, or any object that stands for one, hands its steps on to."""
    for value in list(kinds.fields_of(optimizer).values()) if depth else ():
        sort = kinds.entry_of(type(value), _SORTS)
        for one in [value] if sort is None else sorts.elements(sort, value, _INNER):
            if kinds.is_a(one, torch.optim.Optimizer):
                yield one
                yield from _wrapped(one, depth - 1)


def _path(frame: FrameType | None, name: str, schedule: Any) -> str:
    """What the notebook calls it where a method says `self.schedule`."""
    own = outer_name(frame, schedule) if frame is not None and name.startswith("self.") else ""
    return own or from_outside(frame, name)


def _is_new(fields: dict[str, Any]) -> bool:
    """True for a schedule that nobody has stepped: not all of torch's count their calls."""
    parts = fields.get("_schedulers")
    if type(parts) is list and "last_epoch" not in fields:
        return any(kinds.fields_of(one).get("_step_count") == 1 for one in parts)
    count = fields.get("_step_count")
    return count == 1 or (count in (0, None) and fields.get("last_epoch") == 0)


def _finished(record: _Record, recorder: Recorder, siblings: int) -> ScheduleFact:
    # That of a function is gone when the cell is done; what it had at the latest look tells enough.
    optimizer = record.optimizer() if record.optimizer is not None else None
    latest = record.rates[-1][1] if record.rates else None
    return record.fact._replace(
        count=record.calls,
        step_counts=tuple(record.step_counts),
        optimizer_steps=_steps_of(optimizer, recorder) if optimizer is not None else record.steps(),
        first_rate=record.first_rate,
        last_rate=_rate(optimizer) if optimizer is not None else latest,
        rates=tuple(record.rates),
        siblings=siblings,
    )


def _look(record: _Record, recorder: Recorder, site: Site) -> None:
    optimizer = record.optimizer() if record.optimizer is not None else None
    steps = _steps_of(optimizer, recorder)
    record.looks[1:] = [(record.calls, steps)]
    if record.calls <= _FIRST_CALLS and site is record.site:
        record.step_counts.append(steps)
    rate = _rate(optimizer)
    if rate is not None:
        record.rates.append((record.calls - 1, rate))


def _steps_of(optimizer: Any, recorder: Recorder) -> int:
    """Steps of an optimizer in this cell so far."""
    owner = id(optimizer)
    return sum(site.count for site in recorder.sites.values() if site.kind == "step" and site.owner == owner)


def _rate(optimizer: Any) -> float | None:
    """The learning rate of the first group, if it is a number."""
    rate: Any = next(iter(groups_of(optimizer)), {}).get("lr")
    return float(rate) if kinds.is_one_of(rate, (int, float)) else None


def _settings(fields: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    values: list[tuple[str, Any]] = [(name, fields.get(name)) for name in _SETTINGS]
    return tuple((name, float(value)) for name, value in values if kinds.is_one_of(value, (int, float)))


def _milestones(value: Any) -> tuple[int, ...]:
    """Steps at which a `MultiStepLR` lowers the rate, which it keeps as a `Counter`."""
    numbers = list(dict.keys(value)) if kinds.is_a(value, dict) else value if type(value) is list else []
    return tuple(sorted(number for number in numbers if type(number) is int))
