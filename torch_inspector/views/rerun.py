"""What became of the last findings, in words: fixed, still there, new."""

from __future__ import annotations

from collections.abc import Iterable

from torch_inspector.facts import Run
from torch_inspector.findings import Finding
from torch_inspector.outcome import Change, Fate, Outcome
from torch_inspector.views.card import Card, Line
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import amount, several
from torch_inspector.views.words import cell_name

# Names in the one line of a cell that became clean.
_NAMES = 3
_NAME_LIMIT = 60
# One line of a terminal, and as long as one line of a notebook may be.
_SHORT, _LONG = 80, 110
_SEEN = ", of those looked at"
DONE = "✓"


def clean_card(run: Run, outcome: Outcome | None) -> Card | None:
    """The one quiet line of a cell that became clean; None if nothing was fixed."""
    if outcome is None or run.findings or not (outcome.fixed or outcome.gone):
        return None
    return Card(_fitting(f"{DONE} {cell_name(run)}: ", outcome), "calm", ())


def fixed_lines(outcome: Outcome | None) -> list[Line]:
    """A line for each kind of finding that is gone, at most three and a count."""
    if outcome is None:
        return []
    since = _since(outcome)
    said = [f"{DONE} fixed{since}: {_named(fates, 0)}" for fates in _kinds(outcome.fixed)]
    said += [f"gone{since}, with its code: {_named(fates, 0)}" for fates in _gone(outcome)]
    left = len(said) - _NAMES
    return [*map(Line, said[:_NAMES]), *([Line(f"and {several(left, 'more kind')}")] if left > 0 else [])]


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


def _fitting(lead: str, outcome: Outcome) -> str:
    """What was fixed and what is gone in one line, with as much about it as there is room for."""
    fixed, gone = _kinds(outcome.fixed), _gone(outcome)
    most = min(_NAMES, max(len(fixed), len(gone)))

    def text(plainness: int, names: int, since: str = "") -> str:
        parts = (
            _listed(f"fixed{since}: ", fixed, plainness, names),
            _listed(f"gone{since}, with its code: ", gone, plainness, names),
        )
        return lead + "; ".join(filter(None, parts))

    tries = [(text(0, most, _since(outcome)), _SHORT)]
    for names in range(most, 0, -1):
        tries += [(text(plainness, names), limit) for limit in (_SHORT, _LONG) for plainness in (0, 1)]
        tries += [(text(plainness, names), _LONG) for plainness in (2, _PLAINEST)]
    return next((one for one, limit in tries if len(one) <= limit), tries[-1][0])


def _listed(lead: str, kinds: list[list[Fate]], plainness: int, names: int) -> str:
    if not kinds:
        return ""
    left = len(kinds) - names
    return (
        lead + "; ".join(_named(one, plainness) for one in kinds[:names]) + (f"; and {left} more" if left > 0 else "")
    )


def _kinds(fates: Iterable[Fate]) -> list[list[Fate]]:
    """Findings of one kind together."""
    kinds: dict[str, list[Fate]] = {}
    for fate in fates:
        kinds.setdefault(fate.finding.slug, []).append(fate)
    return list(kinds.values())


def _gone(outcome: Outcome) -> list[list[Fate]]:
    """Those that are gone with their code, less kinds of which some were fixed: a name is said once."""
    fixed = {fate.finding.slug for fate in outcome.fixed}
    return _kinds(fate for fate in outcome.gone if fate.finding.slug not in fixed)


_PLAINEST = 3


def _named(fates: list[Fate], plainness: int) -> str:
    """Findings of one kind by name, with what they are about and the number that changed.

    Args:
        fates: Of one kind.
        plainness: From 0, all of it, over 1, the number alone, and 2, bytes without their label, to 3, the name.
    """
    name = clip(fates[0].finding.slug, _NAME_LIMIT) or "finding"
    subjects = dict.fromkeys(clip(fate.finding.subject, _NAME_LIMIT) for fate in fates if fate.finding.subject)
    shown = ", ".join(f"`{one}`" for one in list(subjects)[:_NAMES]) + (", …" if len(subjects) > _NAMES else "")
    number = _number(fates, labelled=plainness < _PLAINEST - 1)
    places = several(len(fates), "place") if len(fates) > len(subjects) > 0 else ""
    inside = ", ".join(filter(None, (shown if plainness != 1 or not number else "", places, number)))
    return f"{name} ({inside})" if inside and plainness < _PLAINEST else name


def _number(fates: list[Fate], *, labelled: bool) -> str:
    """What changed, of a single finding."""
    if len(fates) > 1:
        return ""
    change = fates[0].change
    if change is not None:
        return _change(change) if labelled else _values(change) if change.unit in ("bytes", "s") else ""
    return "failed before, runs now" if fates[0].failed else ""


def _since(outcome: Outcome) -> str:
    return "" if outcome.cell is None else f" since cell {outcome.cell}"


def _change(change: Change) -> str:
    return f"{clip(change.label, _NAME_LIMIT).removesuffix(_SEEN)}: {_values(change)}"


def _values(change: Change) -> str:
    now = "" if change.after is None else f", {amount(change.after, change.unit)} now"
    return f"{amount(change.before, change.unit)} before{now}"
