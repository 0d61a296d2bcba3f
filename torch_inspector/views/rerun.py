"""What became of the last findings, in words: fixed, still there, new."""

from __future__ import annotations

from torch_inspector.facts import Run
from torch_inspector.findings import Finding
from torch_inspector.outcome import Change, Fate, Outcome
from torch_inspector.views.card import TITLE_LIMIT, Card, Line
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import amount, several
from torch_inspector.views.words import cell_name

# Names in the one line of a cell that became clean.
_NAMES = 3
_NAME_LIMIT = 60
DONE = "✓"


def clean_card(run: Run, outcome: Outcome | None) -> Card | None:
    """The one quiet line of a cell that became clean; None if nothing was fixed."""
    if outcome is None or run.findings or not outcome.fixed:
        return None
    left = len(outcome.fixed) - _NAMES
    more = f"; and {left} more" if left > 0 else ""

    def title(told: int) -> str:
        shown = "; ".join(_fixed(fate, told=index < told) for index, fate in enumerate(outcome.fixed[:_NAMES]))
        return f"{DONE} {cell_name(run)}: fixed{_since(outcome)}: {shown}{more}"

    # Numbers that would be cut off are left out.
    titles = [title(told) for told in range(_NAMES, -1, -1)]
    return Card(next((text for text in titles if len(text) <= TITLE_LIMIT), titles[-1]), "calm", ())


def fixed_lines(outcome: Outcome | None) -> list[Line]:
    """A line for each finding that is gone, at most three and a count."""
    if outcome is None or not outcome.fixed:
        return []
    lines = [Line(f"{DONE} fixed{_since(outcome)}: {_fixed(fate)}") for fate in outcome.fixed[:_NAMES]]
    left = len(outcome.fixed) - len(lines)
    return [*lines, *([Line(f"and {several(left, 'more finding')} fixed")] if left else [])]


def status_of(finding: Finding, outcome: Outcome | None) -> str:
    """`new` or `still there`; empty in the first run of a cell."""
    if outcome is None:
        return ""
    return "still there" if fate_of(finding, outcome) is not None else "new"


def change_line(finding: Finding, outcome: Outcome | None) -> list[Line]:
    """The number that changed since the last run, if one did."""
    fate = fate_of(finding, outcome)
    return [Line(_change(fate.change))] if fate is not None and fate.change is not None else []


def fate_of(finding: Finding, outcome: Outcome | None) -> Fate | None:
    """What is known of a finding that was there before; None for a new one."""
    known = outcome.still if outcome is not None else ()
    return next((fate for fate in known if fate.finding is finding), None)


def _fixed(fate: Fate, *, told: bool = True) -> str:
    finding = fate.finding
    name = clip(finding.slug, _NAME_LIMIT) or "finding"
    about = f"`{clip(finding.subject, _NAME_LIMIT)}`" if finding.subject else ""
    change = _change(fate.change) if told and fate.change is not None else ""
    inside = ", ".join(filter(None, (about, change)))
    return f"{name} ({inside})" if inside else name


def _since(outcome: Outcome) -> str:
    return "" if outcome.cell is None else f" since cell {outcome.cell}"


def _change(change: Change) -> str:
    before, after = amount(change.before, change.unit), amount(change.after, change.unit)
    return f"{clip(change.label, _NAME_LIMIT)}: {before} before, {after} now"
