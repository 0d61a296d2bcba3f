"""The order of the steps around a cell, and a bounded history.

Looks for nothing itself: observers and pitfalls are given to it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from torch_inspector.account import MemoryReport
from torch_inspector.facts import Cell, ErrorFact, MemoryFact, Run, Snapshot, Trace
from torch_inspector.facts.part_names import typed_in
from torch_inspector.failures import Failures
from torch_inspector.findings import Finding, one_for_each_fix
from torch_inspector.pitfall import Pitfall

_KEPT = 50
# Runs that a check may look back on.
_EARLIER = 20
# Seconds for the account of all memory, where it is wanted.
_ACCOUNT_S = 1.5
# Findings of one pitfall in one cell; more say nothing new.
_PER_PITFALL = 5
_IGNORE = re.compile(r"#\s*torchcheck:\s*ignore(?:\[([\w\s,-]*)\])?")


class Observer(Protocol):
    """What a session needs from the side that watches."""

    def open(self, budget_s: float) -> None:
        """Starts to watch."""

    def foresee(self, cell: Cell, names: Mapping[str, Any]) -> None:
        """Looks at what the cell that begins is going to delete."""

    def close(self) -> None:
        """Puts back everything that `open` changed."""

    def trace(self, cell: Cell) -> Trace:
        """What happened since `open`."""

    def snapshot(
        self, names: Mapping[str, Any], history: Mapping[Any, Any], cell: Cell, budget_s: float, *, full: bool
    ) -> Snapshot:
        """What holds now."""

    def memory(self) -> tuple[MemoryFact, ...]:
        """Bytes in use now."""

    def error(self, error: BaseException) -> ErrorFact:
        """What is known of an exception."""


class Meant(NamedTuple):
    """A place at which a pitfall stays silent, because the user has said so in the panel."""

    slug: str
    cell: str
    """The front end's id of the cell, or else its text."""
    line: str = ""
    """The text of the line, so that it counts until that is edited; empty for the whole cell."""


@dataclass
class Settings:
    """What the user can set."""

    muted: frozenset[str] = frozenset()
    meant: frozenset[Meant] = frozenset()
    min_nbytes: int = 1 << 20
    time_budget_s: float = 0.020


@dataclass
class Session:
    """Looks at one cell after the other.

    Args:
        observer: Gives the observer for the next cell: one that watches torch once the user has imported it.
        pitfalls: Gives the pitfalls; asked when the first cell ends.
        names: The user's variables.
        history: IPython's `Out`, empty elsewhere.
        account: Says who holds all memory, within so many seconds.
    """

    observer: Callable[[], Observer]
    pitfalls: Callable[[], Iterable[Pitfall]]
    names: Callable[[], Mapping[str, Any]]
    history: Callable[[], Mapping[Any, Any]] = dict
    account: Callable[[float], MemoryReport | None] = lambda _: None
    settings: Settings = field(default_factory=Settings)
    failures: Failures = field(default_factory=Failures)
    runs: deque[Run] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _cell: Cell | None = None
    _begun: float = 0.0
    _before: Snapshot = field(default_factory=Snapshot)
    _watching: Observer | None = None

    @property
    def cell(self) -> Cell | None:
        """The cell that is running, if one is."""
        return self._cell

    def begin(self, cell: Cell) -> None:
        """A cell is about to run."""
        self.abandon()
        self._cell = cell
        with self.failures.guard("begin"):
            self._before = self.runs[-1].after if self.runs else Snapshot()
            self.watch_now()
            if self._watching is not None:
                self._watching.foresee(cell, self.names())
                self._before = replace(self._before, memory=self._watching.memory())
        self._begun = perf_counter()

    def watch_now(self) -> None:
        """Opens the observer for the running cell: at its start, or when it has just imported torch."""
        if self._cell is None:
            return
        if self._watching is not None:
            self._watching.close()
        self._watching = self.observer()
        self._watching.open(self.settings.time_budget_s)

    def end(self, error: BaseException | None) -> Run | None:
        """The cell has ended: the run with its findings, or None if none was begun."""
        cell, watching = self._cell, self._watching
        duration_s = perf_counter() - self._begun
        self.abandon()
        if cell is None or watching is None:
            return None
        begun = perf_counter()
        run: Run | None = None
        with self.failures.guard("end"):
            run = self._run(cell, watching, error, duration_s)
        if run is not None:
            run = replace(run, inspection_s=perf_counter() - begun)
            # Kept without what came before, or each run would hold all others.
            self.runs.append(replace(run, earlier=(), account=None))
        return run

    def want_report(self) -> None:
        """The running cell asks for the full report."""
        if self._cell is not None:
            self._cell = replace(self._cell, wants_report=True)

    def early(self, trace: Trace) -> tuple[Finding, ...]:
        """What is certain of the running cell already. Asked from another thread; it only reads.

        Args:
            trace: Steps and backward calls so far.
        """
        cell = self._cell
        if cell is None:
            return ()
        run = Run(cell, self._before, trace, earlier=tuple(self.runs)[-_EARLIER:], min_nbytes=self.settings.min_nbytes)
        return self._judged(run, [pitfall for pitfall in self.pitfalls() if pitfall.early]).findings

    def abandon(self) -> None:
        """Stops watching and forgets the running cell."""
        if self._watching is not None:
            with self.failures.guard("close"):
                self._watching.close()
        self._cell, self._watching = None, None

    def state(self) -> Snapshot:
        """Everything that holds now, on request."""
        cell = self._cell or Cell(None, None, "", "")
        observer = self._watching or self.observer()
        return observer.snapshot(self.names(), self.history(), cell, 1.0, full=True)

    def _run(self, cell: Cell, watching: Observer, error: BaseException | None, duration_s: float) -> Run:
        trace = Trace()
        with self.failures.guard("trace"):
            trace = watching.trace(cell)
        fact: ErrorFact | None = None
        if error is not None:
            with self.failures.guard("error"):
                fact = watching.error(error)
        budget_s = max(self.settings.time_budget_s, 0.05 * duration_s)
        if cell.wants_report:
            budget_s = max(budget_s, 1.0)
        after = Snapshot()
        with self.failures.guard("snapshot"):
            after = watching.snapshot(self.names(), self.history(), cell, budget_s, full=cell.wants_report)
        earlier = tuple(self.runs)[-_EARLIER:]
        run = Run(cell, self._before, trace, after, fact, duration_s, 0.0, earlier, self.settings.min_nbytes)
        if cell.wants_report or (fact is not None and fact.shortage is not None):
            with self.failures.guard("account"):
                run = replace(run, account=self.account(_ACCOUNT_S))
        return self._judged(run, self.pitfalls())

    def _judged(self, run: Run, pitfalls: Iterable[Pitfall]) -> Run:
        """The run with its findings, and with the pitfalls that cannot be said to have none."""
        found: list[tuple[Pitfall, list[Finding]]] = []
        failures = self.failures
        left_out = {*self.settings.muted, *filter(failures.gave_up, failures.counts)}
        silent: set[str] = set()
        for pitfall in pitfalls:
            silent.add(pitfall.slug)
            if pitfall.slug in left_out:
                continue
            # A hundred of them after each cell: without the objects of a `with`.
            try:
                findings = list(pitfall.check(run))
            except BaseException as error:
                if not failures.swallow(pitfall.slug, error):
                    raise
            else:
                if findings:
                    found.append((pitfall, findings))
                elif not self._is_said_once(pitfall, run):
                    silent.discard(pitfall.slug)
        kept = self._stamped(found, run.cell) if found else []
        return replace(run, findings=tuple(kept), unjudged=frozenset(silent) - {finding.slug for finding in kept})

    def _is_said_once(self, pitfall: Pitfall, run: Run) -> bool:
        """True if a check finds nothing only because it has told so before."""
        if not any(one.slug == pitfall.slug for past in run.earlier for one in past.findings):
            return False
        with self.failures.guard(pitfall.slug):
            return any(pitfall.check(replace(run, earlier=tuple(replace(past, findings=()) for past in run.earlier))))
        return True

    def _stamped(self, found: list[tuple[Pitfall, list[Finding]]], cell: Cell) -> list[Finding]:
        """The findings with what the checks left open, less those that the user or a better finding rules out."""
        sources: dict[int | None, str] = {past.cell.number: past.cell.source for past in self.runs}
        sources[cell.number] = cell.source
        ignored = {number: ignored_lines(source) for number, source in sources.items()}
        kept: list[Finding] = []
        for pitfall, findings in found:
            with self.failures.guard(pitfall.slug):
                stamped = [_stamp(finding, pitfall, cell, sources) for finding in findings]
                told = [one for one in stamped if not _is_ignored(one, cell, ignored) and not self._is_meant(one, cell)]
                kept.extend(told[:_PER_PITFALL])
        return self._without_repeats(kept) if len(kept) > 1 else kept

    def _is_meant(self, finding: Finding, cell: Cell) -> bool:
        if not self.settings.meant:
            return False
        there = next((run.cell for run in reversed(self.runs) if run.cell.number == finding.cell), cell)
        there = cell if finding.cell == cell.number else there
        places = (Meant(finding.slug, cell_key(cell)), Meant(finding.slug, cell_key(there), finding.code.strip()))
        return not self.settings.meant.isdisjoint(places)

    def _without_repeats(self, findings: list[Finding]) -> list[Finding]:
        """The findings less those that another one of the same line says better, or mends in the same way."""
        yielding = {pitfall.slug: pitfall.yields_to for pitfall in self.pitfalls() if pitfall.yields_to}
        told = {(one.slug, one.cell, one.line) for one in findings}
        better = (
            one
            for one in findings
            if not any((slug, one.cell, one.line) in told for slug in yielding.get(one.slug, ()))
        )
        return one_for_each_fix(list(better))


def cell_key(cell: Cell) -> str:
    """What a cell is known by when it runs again."""
    return cell.id or cell.source


def _stamp(finding: Finding, pitfall: Pitfall, cell: Cell, sources: Mapping[int | None, str]) -> Finding:
    """The finding with what the check left open."""
    line = finding.line
    lines = sources.get(cell.number if finding.cell is None else finding.cell, "").splitlines()
    code = lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else finding.code
    return replace(
        finding,
        slug=pitfall.slug,
        severity=finding.severity or pitfall.severity,
        cell=cell.number if finding.cell is None else finding.cell,
        code=code,
        subject=typed_in(finding.subject),
        fix=typed_in(finding.fix),
    )


@lru_cache(maxsize=256)
def ignored_lines(source: str) -> dict[int, frozenset[str]]:
    """Slugs that comments switch off by line; line 0 holds those for the whole cell.

    A comment on a line of its own before the first code counts for the cell. An empty set stands for all slugs.
    """
    ignored: dict[int, frozenset[str]] = {}
    at_top = True
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        at_top = at_top and (not text or text.startswith(("#", "%%")))
        match = _IGNORE.search(line)
        if match:
            slugs = frozenset(part.strip() for part in (match[1] or "").split(",") if part.strip())
            ignored[0 if at_top else number] = slugs
    return ignored


def _is_ignored(finding: Finding, cell: Cell, ignored: Mapping[int | None, Mapping[int, frozenset[str]]]) -> bool:
    places = [(cell.number, 0)] if finding.line is None else [(cell.number, 0), (finding.cell, finding.line)]
    slugs = [ignored[number][line] for number, line in places if line in ignored.get(number, {})]
    return any(not some or finding.slug in some for some in slugs)
