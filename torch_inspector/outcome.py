"""What became of a cell's last findings when it runs again: fixed, still there, new. Reads runs and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding

# An edited cell keeps most of its lines. Below two thirds, cells that only begin with the same imports would be one.
_ALIKE = 2 / 3
# Longer texts are compared by their first lines: the comparison is quadratic.
_LINES = 200
# Smaller numbers of bytes are equal by chance.
_TELLING_NBYTES = 1024


@dataclass(frozen=True)
class Change:
    """One number of the evidence, as it was and as it is."""

    label: str
    before: int | float
    after: int | float
    unit: str


@dataclass(frozen=True)
class Fate:
    """A finding, with a number that changed where one is known."""

    finding: Finding
    change: Change | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of the findings of the last run of this cell."""

    cell: int | None
    """Number of that run."""
    fixed: tuple[Fate, ...] = ()
    """Findings of that run that are gone."""
    still: tuple[Fate, ...] = ()
    """Findings of this run that were there before."""
    new: tuple[Finding, ...] = ()


def outcome_of(run: Run) -> Outcome | None:
    """None if the cell has not run before, if nothing was or is found, and if the runs cannot be compared."""
    if not run.findings and not any(past.findings for past in run.earlier):
        return None  # most cells: nothing to compare
    last = _last_of(run)
    if last is None or not (last.findings or run.findings):
        return None
    pairs = _pairs(last.findings, run.findings)
    kept = [old for old, _ in pairs]
    return Outcome(
        last.cell.number,
        tuple(
            Fate(one, _measured(one, last, run)) for one in last.findings if one not in kept and _gone(one, run, last)
        ),
        tuple(Fate(now, _changed(old, now)) for old, now in pairs),
        tuple(one for one in run.findings if one not in [now for _, now in pairs]),
    )


def same_cell(one: Run, other: Run) -> bool:
    """True for two runs of one cell, edited in between or not: by the front end's id, else by the text."""
    if one.cell.id and other.cell.id:
        return one.cell.id == other.cell.id
    mine, theirs = _lines(one.cell.source), _lines(other.cell.source)
    if mine == theirs or not (mine and theirs):
        return mine == theirs and bool(mine)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    return matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


def _last_of(run: Run) -> Run | None:
    """The latest earlier run of the same cell that says something: a failed one without findings does not."""
    return next(
        (one for one in reversed(run.earlier) if (one.findings or _is_whole(one)) and same_cell(run, one)), None
    )


def _lines(source: str) -> list[str]:
    lines = (line.strip() for line in source.splitlines()[:_LINES])
    return [line for line in lines if line and not line.startswith(("#", "%%torchcheck"))]


def _is_whole(run: Run) -> bool:
    """True if the cell came to its end and was looked at to the end."""
    return run.error is None and run.after.complete


def _gone(finding: Finding, run: Run, last: Run) -> bool:
    """True if a finding that is missing now is missing for no other reason than that nothing is wrong."""
    if not _is_whole(run) or finding.slug in run.unjudged:
        return False
    # Some hints are given only where the report is asked for.
    return run.cell.wants_report or not last.cell.wants_report or finding.severity != "hint"


def _pairs(old: Iterable[Finding], new: Iterable[Finding]) -> list[tuple[Finding, Finding]]:
    """Findings of one kind in both runs, those about the same thing at the same line first."""
    pairs: list[tuple[Finding, Finding]] = []
    left, fresh = list(old), list(new)
    for fields in (("slug", "subject", "code"), ("slug", "subject"), ("slug", "code"), ("slug",)):
        for now in list(fresh):
            then = next((one for one in left if _agree(one, now, fields)), None)
            if then is not None:
                pairs.append((then, now))
                left.remove(then)
                fresh.remove(now)
    return sorted(pairs, key=lambda pair: list(new).index(pair[1]))


def _agree(one: Finding, other: Finding, fields: tuple[str, ...]) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _changed(old: Finding, now: Finding) -> Change | None:
    """The first number of the evidence that is clearly another one now; bytes and counts before anything else."""
    before = {(one.label, one.unit): number for one, number in _numbers(old)}
    changes = [
        Change(one.label, before[one.label, one.unit], number, one.unit)
        for one, number in _numbers(now)
        if _differs(before.get((one.label, one.unit), number), number) and not one.label.endswith(" line")
    ]
    ranks = ("bytes", "count")
    return min(changes, key=lambda one: ranks.index(one.unit) if one.unit in ranks else len(ranks), default=None)


def _differs(before: float, after: float) -> bool:
    """True for more than a twentieth, the noise of a time; never for what is not a number."""
    return 20 * abs(after - before) > max(abs(before), abs(after))


def _numbers(finding: Finding) -> Iterator[tuple[Evidence, int | float]]:
    for one in finding.evidence:
        if isinstance(one.value, (int, float)):
            yield one, one.value


def _measured(finding: Finding, last: Run, run: Run) -> Change | None:
    """A number of the evidence of a finding that is gone, measured in this run where it was measured in that one."""
    for one, number in _numbers(finding):
        now = _held(run, finding.subject, one)
        same = (name for name, value in _held(last, finding.subject, one).items() if value == number)
        after = next((now.get(name, 0) for name in same), None)
        if after is not None and after < number:
            return Change(one.label, number, after, one.unit)
    return None


def _held(run: Run, path: str, evidence: Evidence) -> dict[str, int | float]:
    """What can be measured of such evidence at the end of any run, by how it is measured."""
    if evidence.unit == "s":
        return {"duration": run.duration_s}
    if evidence.unit == "bytes" and path:
        return {name: nbytes for name, nbytes in _bytes_of(run, path) if nbytes >= _TELLING_NBYTES}
    measure = COUNTED.get(evidence.label)
    return {} if measure is None else {evidence.label: measure(run, path)}


def _bytes_of(run: Run, path: str) -> Iterator[tuple[str, int]]:
    for graph in run.after.graphs:
        if graph.path == path:
            yield from (("activations", graph.saved_nbytes), ("kept tensors", graph.nbytes))
    for holder in run.after.holders:
        if holder.path == path:
            yield from (("held", holder.nbytes), ("held by its graph", holder.graph_nbytes))
    for tensor in run.after.tensors:
        if tensor.path == path:
            yield from (("storage", tensor.storage_nbytes), ("tensor", tensor.nbytes))
    yield from (("state", one.state_nbytes) for one in run.after.optimizers if one.path == path)


COUNTED: dict[str, Callable[[Run, str], int]] = {
    "steps on kept gradients, of those looked at": lambda run, _: sum(one.kept_gradients for one in run.trace.steps),
    "tensors with history": lambda run, path: sum(one.tensor_count for one in run.after.graphs if one.path == path),
    "graph nodes": lambda run, path: sum(one.node_count for one in run.after.graphs if one.path == path),
}
"""Counts of the evidence that can be taken again in a run without the finding, by the label that the checks give."""
