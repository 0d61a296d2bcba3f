"""The evidence of a finding: bytes as bars, shapes as boxes, the rest as a small table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torch_inspector.findings import Evidence, Finding
from torch_inspector.views.card import Bars, Part, Table
from torch_inspector.views.quantity import amount, shape

_COUNT = 12
_SHAPE = re.compile(r"\((\d{1,15}(?:, \d{1,15}){0,7}),?\)")
_NUMBERED = re.compile(r"(.+ at call) \d{1,9}")
# Fewer values are read as fast as a line.
_SERIES = 4
# Longer texts stand in no sentence.
_TEXT = 200
# One amount is compared with nothing.
_BARS = 2
# What differs by less than a twentieth looks the same as a bar.
_ALIKE = 0.95
_PER_MILLE = 1_000
# More bytes than any machine has.
_HEAVIEST = 2**63
# A drawn axis of length 1, and the longest, in pixels.
_THIN, _WIDE, _LOW = 4, 48, 16
# A box is at most so many times as wide as high: longer ones say no more.
_STEEPEST = 3


def evidence_parts(finding: Finding) -> list[Part]:
    """All of it, at most twelve things, in the order in which the check gave them."""
    facts = finding.evidence[:_COUNT]
    series = _series(facts)
    facts = tuple(fact for fact in facts if fact not in series)
    weighed = [fact for fact in facts if fact.unit == "bytes" and _weight(fact) > 0]
    weighed = weighed if len(weighed) >= _BARS and _differ(weighed) else []
    parts: list[Part] = []
    rest = [fact for fact in facts if fact not in weighed]
    boxed = [fact for fact in rest if _shape(fact) is not None]
    stretched = _shapes(boxed)
    if stretched is not None:
        parts.append(stretched)
        rest = [fact for fact in rest if fact not in boxed]
    rest = _not_said(finding, rest)
    if rest:
        parts.append(Table(tuple((fact.label, amount(fact.value, fact.unit)) for fact in rest)))
    if weighed:
        parts.append(_bars(weighed))
    if series:
        parts.append(_course(series))
    return parts


def _not_said(finding: Finding, facts: Sequence[Evidence]) -> list[Evidence]:
    """The facts less those that the sentence or the line says: names between backticks, and what would stand alone."""
    left = [fact for fact in facts if not (isinstance(fact.value, str) and _is_said(finding, fact.value))]
    (only,) = left if len(left) == 1 else (None,)
    alone = only is not None and isinstance(only.value, str) and not only.unit and _stands_in(finding, only.value)
    return [] if alone else left


def _is_said(finding: Finding, value: str) -> bool:
    return f"`{value}`" in finding.message or value.strip() == finding.code.strip() != ""


def _stands_in(finding: Finding, value: str) -> bool:
    """True for a text that is no part of a longer word of the sentence."""
    is_short = len(value) <= _TEXT
    return is_short and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", finding.message) is not None


def _weight(fact: Evidence) -> int | float:
    return fact.value if not isinstance(fact.value, str) and 0 < fact.value < _HEAVIEST else 0


def _differ(facts: Sequence[Evidence]) -> bool:
    """False for amounts that would be bars of one length."""
    weights = list(map(_weight, facts))
    return min(weights) < _ALIKE * max(weights)


def _bars(facts: Sequence[Evidence]) -> Bars:
    widest = max(map(_weight, facts))
    lengths = tuple(int(min(max(_PER_MILLE * _weight(fact) / widest, 0), _PER_MILLE)) for fact in facts)
    return Bars(tuple((fact.label, amount(fact.value, "bytes")) for fact in facts), lengths)


# series ------------------------------------------------------------------------


def _series(facts: Sequence[Evidence]) -> list[Evidence]:
    """One quantity at rising calls, `graph nodes at call 1`, `… at call 8`; empty for fewer than four values."""
    stems: dict[tuple[str, str], list[Evidence]] = {}
    for fact in facts:
        met = _NUMBERED.fullmatch(fact.label[:200])
        if met is not None and _weight(fact) > 0:
            stems.setdefault((met[1], fact.unit), []).append(fact)
    longest = max(stems.values(), key=len, default=[])
    calls = list(map(_call, longest))
    return longest if len(longest) >= _SERIES and calls == sorted(set(calls)) else []


def _call(fact: Evidence) -> int:
    return int(fact.label.rpartition(" ")[2])


def _course(series: Sequence[Evidence]) -> Table:
    """The first and the last of them, with a line through all, from 0 on."""
    first, last = series[0], series[-1]
    across, up = _call(last) - _call(first), max(map(_weight, series))
    points = tuple(
        (_PER_MILLE * (_call(fact) - _call(first)) // across, int(_PER_MILLE * _weight(fact) / up)) for fact in series
    )
    rows = tuple((f"call {_call(fact)}", amount(fact.value, fact.unit)) for fact in (first, last))
    return Table(rows, caption=first.label.rpartition(" at call")[0], figures=(1,), curve=points)


# shapes ------------------------------------------------------------------------


def _shapes(facts: Sequence[Evidence]) -> Table | None:
    """Shapes as a table with boxes, if they were stretched to the last of them; else None."""
    known = [one for one in map(_shape, facts) if one is not None]
    if not known:
        return None
    whole = known[-1]
    axes_of = [_stretched(one, whole) for one in known]
    # One that does not fit says that this is no broadcast: an index, a reshape.
    if None in axes_of or not any(axes_of):
        return None
    rows = tuple(
        (fact.label, amount(fact.value, fact.unit), _in_words(axes or (), whole))
        for fact, axes in zip(facts, axes_of, strict=True)
    )
    return Table(rows, boxes=tuple(_box(one, whole) for one in known))


def _shape(fact: Evidence) -> tuple[int, ...] | None:
    met = _SHAPE.fullmatch(fact.value[:200]) if isinstance(fact.value, str) else None
    return tuple(map(int, met[1].split(", "))) if met is not None else None


def _stretched(one: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of `whole` along which `one` is repeated; None if it does not fit."""
    if len(one) > len(whole):
        return None
    padded = (1,) * (len(whole) - len(one)) + one
    if any(mine not in (1, theirs) for mine, theirs in zip(padded, whole, strict=True)):
        return None
    return tuple(axis for axis, (mine, theirs) in enumerate(zip(padded, whole, strict=True)) if mine != theirs)


def _in_words(axes: tuple[int, ...], whole: tuple[int, ...]) -> str:
    if not axes:
        return ""
    return ", ".join(f"axis {axis}: 1 → {shape((whole[axis],))[1:-2]}" for axis in axes)


def _box(one: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Width and height of a shape's last two axes, and those of the whole."""
    axes = _stretched(one, whole) or ()
    rows, columns = (whole[-2] if len(whole) > 1 else 1), whole[-1]
    longest = max(rows, columns, 1)
    wide, high = (max(_WIDE * length // longest, _WIDE // _STEEPEST, _LOW) for length in (columns, rows))
    thin_wide = _THIN if len(whole) - 1 in axes else wide
    thin_high = _THIN if len(whole) - 2 in axes else high
    return (thin_wide, thin_high, wide, high)
