"""What became of a cell's last findings when it runs again: fixed, still there, new. Reads runs and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import isfinite
from typing import Literal

from torch_inspector.facts import Run
from torch_inspector.facts.redone import done_again, line_again, only_numbers_differ, surely_runs
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
    after: int | float | None
    """None where it cannot be measured in a run without the finding."""
    unit: str


@dataclass(frozen=True)
class Fate:
    """A finding, with a number that changed where one is known."""

    finding: Finding
    change: Change | None = None
    failed: bool = False
    """True if it ended the last run, and this one came to its end."""


@dataclass(frozen=True)
class Outcome:
    """What became of the findings of the last run of this cell."""

    cell: int | None
    """Number of that run."""
    fixed: tuple[Fate, ...] = ()
    """Findings of that run that are gone, although the same was done again."""
    still: tuple[Fate, ...] = ()
    """Findings of this run that were there before."""
    new: tuple[Finding, ...] = ()
    gone: tuple[Fate, ...] = ()
    """Findings of that run whose code is not in the cell any more; nobody knows whether it was mended or left out."""


def outcome_of(run: Run) -> Outcome | None:
    """None if the cell has not run before, if nothing was or is found, and if the runs cannot be compared."""
    if not run.findings and not any(past.findings for past in run.earlier):
        return None  # most cells: nothing to compare
    same = [(at, one) for at, one in enumerate(run.earlier) if same_cell(run, one)]
    told = [one for _, one in same if one.findings or _is_whole(one)]
    if not told:
        return None
    story, left = (*run.earlier, run), list[_Open]()
    for at, one in same:
        left = _left(left, one, story[: at + 1])
    if not (left or run.findings):
        return None
    pairs = _pairs([finding for finding, _ in left], run.findings)
    kept = [old for old, _ in pairs]
    ends = [(one, last, _end(one, last, story)) for one, last in left if one not in kept]
    return Outcome(
        left[-1][1].cell.number if left else told[-1].cell.number,
        tuple(_fixed(one, last, run) for one, last, end in ends if end == "fixed"),
        tuple(Fate(now, _changed(old, now)) for old, now in pairs),
        tuple(one for one in run.findings if one not in [now for _, now in pairs]),
        tuple(Fate(one) for one, _, end in ends if end == "gone"),
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


_Open = tuple[Finding, Run]
"""A finding that nothing has been heard of since a run."""


def _left(before: list[_Open], run: Run, story: Sequence[Run]) -> list[_Open]:
    """What is to be asked about after a run: its findings, and earlier ones of which it says nothing."""
    found = [old for old, _ in _pairs([finding for finding, _ in before], run.findings)]
    unsaid = [(one, last) for one, last in before if one not in found and not _end(one, last, story)]
    return [*unsaid, *((one, run) for one in run.findings)]


def _lines(source: str) -> list[str]:
    lines = (line.strip() for line in source.splitlines()[:_LINES])
    return [line for line in lines if line and not line.startswith(("#", "%%torchcheck"))]


def _is_whole(run: Run) -> bool:
    """True if the cell came to its end and was looked at to the end."""
    return run.error is None and run.after.complete


def _end(finding: Finding, last: Run, story: Sequence[Run]) -> Literal["fixed", "gone", ""]:
    """What became of a finding that the last run of a story does not have; empty if that run says nothing about it."""
    run = story[-1]
    if not _is_looked_for(finding, last, run) or _is_untouched(last, story) or _is_measured_still(finding, last, run):
        return ""
    here = finding.cell in (None, last.cell.number)
    edits = _numbers_edited(last, story) if last.error is None else None
    if edits is not None and not _is_meant(finding, last, run, edits):
        return ""  # of less and of smaller things, much stays silent
    again = line_again(run.cell, finding.code) if here else None
    done = done_again(last, run, last.cell.number if here else finding.cell, finding.line, finding.code)
    if done or (done is None and again is not None and surely_runs(run.cell, again)):
        return "fixed"
    is_other = again is None or (done is None and not _is_in(run, finding.code))
    return "gone" if here and finding.code and is_other else ""


def _is_looked_for(finding: Finding, last: Run, run: Run) -> bool:
    """False if a finding may be missing for other reasons than that nothing is wrong."""
    if not _is_whole(run) or finding.slug in run.unjudged:
        return False
    # Some hints are given only where the report is asked for.
    return run.cell.wants_report or not last.cell.wants_report or finding.severity != "hint"


def _is_untouched(last: Run, story: Sequence[Run]) -> bool:
    """True if nothing but the same cell has run since, as it was: then nobody has mended anything."""
    return all(one.cell.source == last.cell.source for one in story[_place_of(last, story) :])


def _is_measured_still(finding: Finding, last: Run, run: Run) -> bool:
    """True if what should not be there at all was counted again, and is only less."""
    labels = {one.label for one, _ in _numbers(finding)} & set(COUNTED)
    return any(COUNTED[label](run, finding.subject) for label in labels if COUNTED[label](last, finding.subject))


_Edit = tuple[str, str]
"""A line as it was, and as it is."""


def _numbers_edited(last: Run, story: Sequence[Run]) -> list[_Edit] | None:
    """Lines with other numbers, of the cell or else of those that ran in between; None if anything else is new."""
    own, begun = story[-1].cell.source, _place_of(last, story)
    if own != last.cell.source:
        return _edits(last.cell.source, own) if only_numbers_differ(last.cell.source, own) else None
    known = [one.cell.source for one in reversed(story[: begun + 1])]
    edits: list[_Edit] = []
    for source in (one.cell.source for one in story[begun + 1 : -1]):
        old = next((one for one in known if only_numbers_differ(one, source)), None)
        if old is None:
            return None
        edits += _edits(old, source)
    return edits


def _edits(old: str, new: str) -> list[_Edit]:
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    return [(before, now) for before, now in pairs if before != now]


def _is_meant(finding: Finding, last: Run, run: Run, edits: list[_Edit]) -> bool:
    """True if other numbers can have mended something, and have not only made it smaller: those that the fix names."""
    if any(one.unit == "bytes" for one in finding.evidence):
        return _is_empty(finding, last, run)
    named = [re.compile(rf"\b{name}\s*=\s*([\w.+-]+)") for name in re.findall(r"\b(\w+)=(?!=)", finding.fix)]
    return any(
        finding.code.strip() == old.strip() or any(one.findall(old) != one.findall(now) for one in named)
        for old, now in edits
    )


def _place_of(last: Run, story: Sequence[Run]) -> int:
    return next((at for at, one in enumerate(story) if one is last or one.cell == last.cell), 0)


def _is_empty(finding: Finding, last: Run, run: Run) -> bool:
    """True if bytes that something held were measured again, and it holds none."""
    change = _measured(finding, last, run)
    return change is not None and change.unit == "bytes" and change.after == 0


def _is_in(run: Run, code: str) -> bool:
    """True if a cell has a line, whatever numbers are in it."""
    return any(only_numbers_differ(line, code) for line in run.cell.source.splitlines())


def _fixed(finding: Finding, last: Run, run: Run) -> Fate:
    error = last.error.place if last.error is not None else None
    failed = error is not None and (error.cell, error.line) == (finding.cell, finding.line)
    return Fate(finding, _measured(finding, last, run) or (None if failed else _told(finding)), failed)


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
        # A tensor that is not there any more holds nothing, but has no size either.
        after = next((now.get(name, 0) for name in same if name in now or name not in _SIZES), None)
        either = one.label in MATCHED or _CALLS.fullmatch(one.label) is not None
        if after is not None and (_differs(number, after) if either else after < number):
            return Change(one.label, number, after, one.unit)
    return None


def _told(finding: Finding) -> Change | None:
    """A number that says how far the mistake went, where nobody can measure it without the mistake."""
    numbers = (Change(one.label, value, None, one.unit) for one, value in _numbers(finding) if one.label in TELLING)
    return next((one for one in numbers if one.before), None)


def _held(run: Run, path: str, evidence: Evidence) -> dict[str, int | float]:
    """What can be measured of such evidence at the end of any run, by how it is measured."""
    if evidence.unit == "s":
        return {"duration": run.duration_s}
    if evidence.unit == "bytes" and path and "gradient" not in evidence.label:
        return {name: nbytes for name, nbytes in _bytes_of(run, path) if nbytes >= _TELLING_NBYTES}
    if calls := _CALLS.fullmatch(evidence.label):
        return {evidence.label: run.trace.count(f"scaler.{calls[1]}")}
    measure = COUNTED.get(evidence.label) or MATCHED.get(evidence.label)
    value = measure(run, path) if measure is not None else None
    return {} if value is None else {evidence.label: value}


def _bytes_of(run: Run, path: str) -> Iterator[tuple[str, int]]:
    for graph in run.after.graphs:
        if graph.path == path:
            yield from (("activations", graph.saved_nbytes), ("kept tensors", graph.nbytes))
    for holder in run.after.holders:
        if holder.path == path:
            yield from (("held", holder.nbytes), ("held by its graph", holder.graph_nbytes))
    for tensor in run.after.tensors:
        if tensor.path == path:
            yield from zip(_SIZES, (tensor.storage_nbytes, tensor.nbytes), strict=True)
    yield from (("state", one.state_nbytes) for one in run.after.optimizers if one.path == path)


def _last_loss(run: Run) -> float | None:
    return next((one.value for one in reversed(run.trace.losses) if isfinite(one.value)), None)


_SIZES = ("storage", "tensor")
_CALLS = re.compile(r"calls of (step|update|unscale_) in this cell")
COUNTED: dict[str, Callable[[Run, str], int]] = {
    "steps on kept gradients, of those looked at": lambda run, _: sum(one.kept_gradients for one in run.trace.steps),
    "tensors with history": lambda run, path: sum(one.tensor_count for one in run.after.graphs if one.path == path),
    "graph nodes": lambda run, path: sum(one.node_count for one in run.after.graphs if one.path == path),
}
"""Counts of the evidence that can be taken again in a run without the finding, by the label that the checks give.

Where nothing is wrong, they are 0.
"""
MATCHED: dict[str, Callable[[Run, str], int | float | None]] = {
    "last finite loss": lambda run, _: _last_loss(run),
    "parameters that are not finite": lambda run, _: len(run.after.failed_weights),
    "calls of the schedule": lambda run, _: run.trace.count("scheduler"),
    "steps of the optimizer": lambda run, _: run.trace.count("step"),
}
"""The same, of numbers that are another one where nothing is wrong, and may be more."""
TELLING = frozenset(
    (
        *COUNTED,
        *MATCHED,
        "activations kept for backward",
        "backward calls from this line",
        "backward calls like this, of those looked at",
        "bytes of that tensor",
        "bytes of the copies",
        "bytes of the gradient",
        "calls from this line",
        "clips like this, of those looked at",
        "copied",
        "elements visited",
        "gradients not finite before",
        "gradients that are zero everywhere",
        "held alone",
        "held by their frames alone",
        "held by them alone",
        "held now",
        "held still",
        "kept alive",
        "kept for backward",
        "layers without statistics",
        "left over",
        "lowest loss of a positive",
        "lowest loss that can be reached",
        "new parameters in each pass",
        "of these thrown away",
        "parameters with such gradients",
        "parameters without a gradient",
        "parameters without an optimizer",
        "parameters without slope",
        "results that do not fit",
        "scalers from this line",
        "state dicts that share its memory",
        "steps like this, of those looked at",
        "steps that changed nothing, of those looked at",
        "steps without any gradient, of those looked at",
        "such layers",
        "times on one layer",
        "training calls in eval mode",
    )
)
"""Labels of numbers that say how far a mistake goes, and not only what it was made with."""
