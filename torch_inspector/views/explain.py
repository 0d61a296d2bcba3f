"""Findings and pitfalls as cards: what appears under a cell, and what `%torchcheck explain` shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from torch_inspector.facts import Run
from torch_inspector.findings import SEVERITIES, Finding, Severity
from torch_inspector.page import Page
from torch_inspector.pitfall import Pitfall
from torch_inspector.views.card import Card, Code, Details, Line, Part, Prose, Table, Tone
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import amount, count, several

FULL_COUNT = 3
"""Findings that a card under a cell shows in full; more would push the next cell off the screen."""
_KIND_COUNT = 10
_EVIDENCE_COUNT = 12
_MESSAGE_LIMIT = 200
_WHY_LIMIT = 1_500


def finding_card(finding: Finding, pitfall: Pitfall | None, *, cell: int | None = None) -> Card:
    """One finding in full.

    Args:
        finding: As the session stamped it.
        pitfall: The pitfall of its slug; None if it is not known any more.
        cell: Number of the cell under which the card appears; lines of other cells are then named with theirs.
    """
    severity, page = severity_of(finding, pitfall), _page(pitfall)
    name = page.title if page else clip(finding.slug, _MESSAGE_LIMIT) or "finding"
    parts = (
        Line(finding.message),
        *_place(finding, cell),
        *_evidence(finding),
        *([Code(finding.fix, caption="Fix")] if finding.fix else []),
        *_why(finding, page),
    )
    return Card(f"{severity}: {name}", severity, parts, slug=finding.slug)


def run_card(run: Run, pitfalls: Iterable[Pitfall]) -> Card:
    """What appears under a cell: its gravest findings in full, a line for each other kind."""
    known = {pitfall.slug: pitfall for pitfall in pitfalls}
    ordered = in_order(run.findings, known)
    title = f"{cell_name(run)}: {tally(ordered, known)}"
    tone: Tone = severity_of(ordered[0], known.get(ordered[0].slug)) if ordered else "calm"
    return Card(title, tone, finding_parts(run, known, full_count=FULL_COUNT))


def page_card(pitfall: Pitfall) -> Card:
    """The page of a pitfall.

    Raises:
        OSError: the page is missing.
        ValueError: a heading is missing or out of order.
    """
    body = pitfall.page.text.lstrip().partition("\n")[2].strip()
    head = Line(f"{pitfall.slug}, {pitfall.severity}, about {pitfall.subject}")
    return Card(pitfall.page.title, pitfall.severity, (head, Prose(body)), slug=pitfall.slug)


def list_card(pitfalls: Iterable[Pitfall], muted: Collection[str] = ()) -> Card:
    """All pitfalls, one row each.

    Args:
        pitfalls: In the order in which they are listed.
        muted: Slugs that are switched off.
    """
    rows = tuple((p.slug, p.severity, _what(p), "muted" if p.slug in muted else "") for p in pitfalls)
    title = f"torch_inspector: {several(len(rows), 'pitfall')}"
    hint = Line("To read about one: %torchcheck explain NAME")
    return Card(title, "calm", (Table(rows, ("name", "severity", "what it sees", "")), hint))


def finding_parts(run: Run, known: Mapping[str, Pitfall], *, full_count: int) -> tuple[Part, ...]:
    """The findings of a run: the first ones in full, then a line for each kind among the others."""
    ordered = in_order(run.findings, known)
    full, rest = ordered[:full_count], ordered[full_count:]
    cards = (finding_card(finding, known.get(finding.slug), cell=run.cell.number) for finding in full)
    return (*cards, *_others(rest, known))


def severity_of(finding: Finding, pitfall: Pitfall | None) -> Severity:
    """Severity of a finding, also of one that no session has stamped."""
    return finding.severity or (pitfall.severity if pitfall else "hint")


def in_order(findings: Iterable[Finding], known: Mapping[str, Pitfall]) -> list[Finding]:
    """The findings from the gravest on, those of one severity by cell and line."""

    def rank(finding: Finding) -> tuple[int, int, int]:
        severity = severity_of(finding, known.get(finding.slug))
        return SEVERITIES.index(severity), finding.cell or 0, finding.line or 0

    return sorted(findings, key=rank)


def tally(findings: Collection[Finding], known: Mapping[str, Pitfall]) -> str:
    """How many findings of each severity: `1 error, 2 warnings`."""
    severities = [severity_of(finding, known.get(finding.slug)) for finding in findings]
    counts = [several(severities.count(severity), severity) for severity in SEVERITIES if severity in severities]
    return ", ".join(counts) or "no findings"


def cell_name(run: Run) -> str:
    """What to call the run in a title."""
    return "torch_inspector" if run.cell.number is None else f"torch_inspector, cell {run.cell.number}"


def line_name(line: int | None, cell: int | None, here: int | None) -> str:
    """A line as seen from the cell `here`: `line 3`, `line 3 of cell 2`; empty if nothing is known."""
    other = f"cell {cell}" if cell is not None and cell != here else ""
    return " of ".join(filter(None, ("" if line is None else f"line {line}", other)))


def _place(finding: Finding, cell: int | None) -> list[Part]:
    name = line_name(finding.line, finding.cell, cell)
    if finding.code.strip():
        return [Code(finding.code.strip(), caption=name)]
    return [Line(name)] if name else []


def _evidence(finding: Finding) -> list[Part]:
    rows = tuple((fact.label, amount(fact.value, fact.unit)) for fact in finding.evidence[:_EVIDENCE_COUNT])
    return [Table(rows)] if rows else []


def _why(finding: Finding, page: Page | None) -> list[Part]:
    if page is None:
        return []
    why = Prose(clip(page.sections.get("Why it hurts", page.summary), _WHY_LIMIT))
    return [Details("Why it hurts", (why,), more=f"%torchcheck explain {finding.slug}")]


def _others(findings: list[Finding], known: Mapping[str, Pitfall]) -> list[Part]:
    if not findings:
        return []
    by_kind = {slug: list(group) for slug, group in groupby(sorted(findings, key=_slug), key=_slug)}
    kinds = sorted(by_kind.values(), key=lambda group: findings.index(group[0]))
    lines = [_kind_line(group, known) for group in kinds[:_KIND_COUNT]]
    left = len(kinds) - len(lines)
    end = [Line(f"and {several(left, 'more kind')}")] if left else []
    return [Card(several(len(findings), "more finding"), "calm", (*lines, *end))]


def _kind_line(group: list[Finding], known: Mapping[str, Pitfall]) -> Line:
    first = group[0]
    severity = severity_of(first, known.get(first.slug))
    name = clip(first.slug, _MESSAGE_LIMIT) or "finding"
    times = f" ({count(len(group))} times)" if len(group) > 1 else ""
    return Line(f"{severity}: {name}{times}: {clip(first.message, _MESSAGE_LIMIT)}", severity)


def _slug(finding: Finding) -> str:
    return finding.slug


def _page(pitfall: Pitfall | None) -> Page | None:
    # A finding is worth showing without its page too.
    try:
        return pitfall.page if pitfall else None
    except (OSError, ValueError):
        return None


def _what(pitfall: Pitfall) -> str:
    page = _page(pitfall)
    return page.summary.partition(". ")[0].removesuffix(".") or page.title if page else ""
