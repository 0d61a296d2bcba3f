"""What is wrong: a finding with its evidence, as plain values that other programs read.

The field names are a contract: the JSON bundle carries the same ones (`"version": 1`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["error", "warning", "hint"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "hint")
"""From the one that matters most: results are wrong, results or memory may be, worth a line."""


@dataclass(frozen=True)
class Evidence:
    """One thing that was measured in this run."""

    label: str
    value: str | int | float
    unit: str = ""
    """`bytes`, `s`, `count`, …; empty for names, shapes and text."""


@dataclass(frozen=True)
class Finding:
    """One mistake at one place.

    A check leaves `slug` empty, and `severity` too unless the evidence makes it milder or graver than usual; the
    session fills them in.
    """

    message: str
    """One sentence: what happened, with the user's names and the numbers."""
    subject: str = ""
    """The variable, module or optimizer that it is about, as the user would type it."""
    fix: str = ""
    """Code or a short instruction in the user's own names."""
    line: int | None = None
    """Line as typed, from 1, in `cell`."""
    cell: int | None = None
    """Number of the cell that holds the line: an earlier one if a function defined there is at fault."""
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | Literal[""] = ""
    slug: str = ""
    code: str = ""
    """The text of that line, where it is known."""
    held: str = ""
    """The path of the very object that keeps the memory, if one leads there after the cell; front ends ask who holds
    it. Empty for what is deleted, was replaced, or is called so in a function only."""


def size_text(nbytes: float) -> str:
    """Bytes to three digits, in steps of 1,024, as messages and views say them: `512 B`, `12.3 MB`, `1.31 GB`."""
    value, units = float(nbytes), ["B", "KB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:  # noqa: PLR2004 - the step itself
        value, units = value / 1024, units[1:]
    return f"{value:g} B" if units[0] == "B" else f"{three_digits(value)} {units[0]}"


def three_digits(value: float) -> str:
    """A number from 1 on to three digits: `1.31`, `12.3`, `123`, `1,024`."""
    # The bounds are where rounding would add a digit: 9.996 is 10.0, not 10.00.
    places = 2 if value < 9.995 else 1 if value < 99.95 else 0  # noqa: PLR2004
    return f"{value:,.{places}f}"


def number_text(number: float) -> str:
    """A measured number as a message says it, to three digits: `0.43`, `1,799`, `8.81e+32`."""
    return f"{number:,.0f}" if 1_000 <= abs(number) < 1_000_000 else f"{number:.3g}"  # noqa: PLR2004


def all_of(count: int, noun: str) -> str:
    """All of some things as a message says it: `the only gradient`, `both gradients`, `all 1,024 gradients`."""
    if count == 1:
        return f"the only {noun}"
    return f"both {noun}s" if count == 2 else f"all {count:,} {noun}s"  # noqa: PLR2004 - both are two


# Longer names say no more, and push out what is said of them.
_NAME, _CODE = 60, 120
_LONG = re.compile(rf"\w{{{_NAME + 1},}}")
_SENTENCE, _FIX = 380, 1_000


def with_short_names(finding: Finding) -> Finding:
    """The finding with the middle of overlong names left out of what is read: message, fix and evidence."""
    said = "`".join(
        _cut(piece, _CODE) if at % 2 else piece for at, piece in enumerate(short_names(finding.message).split("`"))
    )
    cut = _cut(said, _SENTENCE)
    # What is left of a pair is closed.
    told = f"{cut}`" if cut != said and cut.count("`") % 2 else cut
    evidence = tuple(
        replace(one, label=_cut(short_names(one.label), _CODE), value=_cut(short_names(one.value), _CODE))
        if isinstance(one.value, str)
        else replace(one, label=_cut(short_names(one.label), _CODE))
        for one in finding.evidence
    )
    return replace(finding, message=told, fix=_cut(short_names(finding.fix), _FIX), evidence=evidence)


def short_names(text: str) -> str:
    """The text with the middle of overlong names left out."""
    return _LONG.sub(lambda long: _cut(long[0], _NAME), text) if len(text) > _NAME else text


def _cut(text: str, limit: int) -> str:
    """The text, or its beginning and its end: `limit` letters at most."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[: limit - half]}…{text[1 - half :]}"


def one_for_each_fix(findings: list[Finding]) -> list[Finding]:
    """Of several above a hint that say one fix at one line, the gravest; all of what has no fix."""
    best: dict[tuple[int | None, int | None, str], Finding] = {}
    for one in (*(f for f in findings if f.severity == "error"), *(f for f in findings if f.severity == "warning")):
        best.setdefault((one.cell, one.line, one.fix), one)

    def stays(one: Finding) -> bool:
        other = best.get((one.cell, one.line, one.fix), one)
        apart = other.slug == one.slug and other.subject != one.subject
        return one.severity == "hint" or other is one or apart or not one.fix

    return [one for one in findings if stays(one)]
