"""Findings and pitfalls as cards: what appears under a cell, and what `%torchcheck explain` shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from torch_inspector.facts import Run
from torch_inspector.failures import Failures
from torch_inspector.findings import SEVERITIES, Finding, Severity
from torch_inspector.outcome import Outcome, outcome_of
from torch_inspector.page import Page
from torch_inspector.pitfall import Pitfall
from torch_inspector.views.card import Card, Details, Line, Part, Prose, Table, Tone
from torch_inspector.views.context import context_of
from torch_inspector.views.evidence import evidence_parts
from torch_inspector.views.fix import fix_parts
from torch_inspector.views.ledger import ledger_parts
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import count, several
from torch_inspector.views.rerun import change_line, clean_card, fixed_lines, status_of
from torch_inspector.views.words import cell_name, line_name

OPEN_COUNT = 3
"""Findings that are open; more would push the next cell off the screen."""
_FULL_COUNT = 10
"""Findings that can be opened; a loop that goes wrong can give one per turn."""
_KIND_COUNT = 10
_MESSAGE_LIMIT = 200
# Two or three sentences: the page, which says the rest, is a click away, and the file holds these twice.
_WHY_LIMIT = 340
_FIRST = re.compile(
    r"(?:The|An?|All|Each|Every|No|This|These|At|In|On|What|Gradients|(?:Log-s|S)oftmax|Line|Anomaly)(?= )"
)
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`*])")


@dataclass(frozen=True)
class Drawing:
    """What findings are drawn with."""

    run: Run
    known: Mapping[str, Pitfall]
    """Pitfalls by slug."""
    outcome: Outcome | None = None
    docs_url: str = ""
    """Where the pages are on the web; empty if they are not."""
    failures: Failures = field(default_factory=Failures)

    @classmethod
    def of(cls, run: Run, pitfalls: Iterable[Pitfall], docs_url: str = "", failures: Failures | None = None) -> Drawing:
        """The drawing of a run, with what became of the last findings of its cell."""
        failures = failures or Failures()
        outcome: Outcome | None = None
        with failures.guard("outcome"):
            outcome = outcome_of(run)
        return cls(run, {pitfall.slug: pitfall for pitfall in pitfalls}, outcome, docs_url, failures)


def finding_part(finding: Finding, drawing: Drawing, *, is_open: bool = False) -> Details:
    """One finding: its line, and under it all that is known.

    Args:
        finding: As the session stamped it.
        drawing: The run that found it, and what it is drawn with.
        is_open: Show it unfolded.
    """
    pitfall = drawing.known.get(finding.slug)
    severity = severity_of(finding, pitfall)
    parts: tuple[Part, ...] = ()
    # What cannot be drawn costs its own finding the details, and no other finding anything.
    with drawing.failures.guard("finding"):
        parts = _inside(finding, drawing, pitfall)
    where = line_name(finding.line, finding.cell, drawing.run.cell.number)
    lead = ", ".join(filter(None, (severity, where, status_of(finding, drawing.outcome))))
    return Details(
        f"{lead}: {_continued(finding.message)}",
        parts,
        tone=severity,
        open=is_open,
        slug=finding.slug,
        lead=clip(lead, 80),
    )


def run_card(drawing: Drawing) -> Card:
    """What appears under a cell: a line for each finding, the first ones open; or that the cell became clean."""
    run = drawing.run
    if not run.findings:
        return clean_card(run, drawing.outcome) or Card(f"{cell_name(run)}: no findings", "calm", ())
    severities = {severity_of(finding, drawing.known.get(finding.slug)) for finding in run.findings}
    tone: Tone = min(severities, key=SEVERITIES.index)
    return Card(f"{cell_name(run)}: {tally(run.findings, drawing.known)}", tone, finding_parts(drawing))


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
    return Card(title, "calm", (Table(rows, ("name", "severity", "what it sees", "state")), hint))


def finding_parts(drawing: Drawing) -> tuple[Part, ...]:
    """What was fixed, then the findings of a run: the first ones open, more closed, the rest as a line per kind."""
    ordered = in_order(drawing.run, drawing.known)
    first, closed, rest = ordered[:OPEN_COUNT], ordered[OPEN_COUNT:_FULL_COUNT], ordered[_FULL_COUNT:]
    left = len(closed) + len(rest)
    return (
        *fixed_lines(drawing.outcome),
        *(finding_part(finding, drawing, is_open=True) for finding in first),
        *([Line(f"and {count(left)} more", strong=True)] if left else []),
        *(finding_part(finding, drawing) for finding in closed),
        *_kinds(rest, drawing),
    )


def severity_of(finding: Finding, pitfall: Pitfall | None) -> Severity:
    """Severity of a finding, also of one that no session has stamped."""
    return finding.severity or (pitfall.severity if pitfall else "hint")


def in_order(run: Run, known: Mapping[str, Pitfall]) -> list[Finding]:
    """The findings from the gravest on, those of one severity by cell and line.

    Where the cell failed, what is known of the line that raised comes first: its reader has just seen the traceback.
    """
    raised = _raised_at(run)

    def rank(finding: Finding) -> tuple[bool, int, int, int]:
        severity = severity_of(finding, known.get(finding.slug))
        cell = run.cell.number if finding.cell is None else finding.cell
        elsewhere = raised is None or (cell, finding.line) != raised
        return elsewhere, SEVERITIES.index(severity), finding.cell or 0, finding.line or 0

    return sorted(run.findings, key=rank)


def _raised_at(run: Run) -> tuple[int | None, int] | None:
    """Cell and line of the exception that ended the cell; None if it came to its end or was stopped by hand."""
    error = run.error
    if error is None or error.interrupted or error.place.line is None:
        return None
    return run.cell.number if error.place.cell is None else error.place.cell, error.place.line


def tally(findings: Collection[Finding], known: Mapping[str, Pitfall]) -> str:
    """How many findings of each severity: `1 error, 2 warnings`."""
    severities = [severity_of(finding, known.get(finding.slug)) for finding in findings]
    counts = [several(severities.count(severity), severity) for severity in SEVERITIES if severity in severities]
    return ", ".join(counts) or "no findings"


def _inside(finding: Finding, drawing: Drawing, pitfall: Pitfall | None) -> tuple[Part, ...]:
    code = context_of(finding, drawing.run)
    return (
        *change_line(finding, drawing.outcome),
        *([code] if code is not None else []),
        *evidence_parts(finding),
        *ledger_parts(finding, drawing.run),
        *fix_parts(finding.fix),
        *_why(finding, page_of(pitfall), drawing.docs_url),
    )


def _why(finding: Finding, page: Page | None, docs_url: str) -> list[Part]:
    """The reason in short, folded away, with the way to the page."""
    if page is None:
        return []
    command = f"%torchcheck explain {finding.slug}"
    link = Line(command, slug=finding.slug, address=page_address(docs_url, finding.slug))
    return [Details("Why it hurts", (Prose(why_of(page)), link), more=command)]


def why_of(page: Page) -> str:
    """The first sentences of the reason: what happens, with numbers."""
    reason = page.sections.get("Why it hurts", "").strip() or page.summary
    first = " ".join(reason.split("\n\n")[0].split())
    # What a colon announces is on the page only.
    sentences = _SENTENCE.split(f"{first[:-1]}." if first.endswith(":") else first)
    why = sentences[0]
    for sentence in sentences[1:]:
        if len(why) + len(sentence) >= _WHY_LIMIT:
            break
        why = f"{why} {sentence}"
    return clip(why, 2 * _WHY_LIMIT)


def page_address(docs_url: str, slug: str) -> str:
    """Where the page is on the web; empty if no place is configured."""
    return f"{docs_url.rstrip('/')}/{slug}.html" if docs_url else ""


def _kinds(findings: list[Finding], drawing: Drawing) -> list[Part]:
    if not findings:
        return []
    by_kind = {slug: list(group) for slug, group in groupby(sorted(findings, key=_slug), key=_slug)}
    kinds = sorted(by_kind.values(), key=lambda group: findings.index(group[0]))
    lines = [_kind_line(group, drawing) for group in kinds[:_KIND_COUNT]]
    left = len(kinds) - len(lines)
    return [*lines, *([Line(f"and {several(left, 'more kind')}")] if left else [])]


def _kind_line(group: list[Finding], drawing: Drawing) -> Line:
    first = group[0]
    severity = severity_of(first, drawing.known.get(first.slug))
    where = line_name(first.line, first.cell, drawing.run.cell.number)
    name = clip(first.slug, _MESSAGE_LIMIT) or "finding"
    times = f" ({count(len(group))} times)" if len(group) > 1 else ""
    lead = ", ".join(filter(None, (severity, where)))
    return Line(f"{lead}: {name}{times}: {clip(_continued(first.message), _MESSAGE_LIMIT)}", severity)


def _continued(message: str) -> str:
    """A sentence as it goes on behind a colon: names stay as they are, the first words of English become small."""
    first = _FIRST.match(message)
    return message if first is None else first[0].lower() + message[first.end() :]


def _slug(finding: Finding) -> str:
    return finding.slug


def page_of(pitfall: Pitfall | None) -> Page | None:
    """Its page; None if it cannot be read, as a finding is worth showing without one."""
    try:
        return pitfall.page if pitfall else None
    except (OSError, ValueError):
        return None


def _what(pitfall: Pitfall) -> str:
    page = page_of(pitfall)
    return page.summary.partition(". ")[0].removesuffix(".") or page.title if page else ""
