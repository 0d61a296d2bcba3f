"""What is wrong: a finding with its evidence, as plain values that other programs read.

The field names are a contract: the JSON bundle carries the same ones (`"version": 1`).
"""

from __future__ import annotations

from dataclasses import dataclass
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


def size_text(nbytes: int) -> str:
    """Bytes as a message says them, in steps of 1,024: `512 B`, `3.8 MB`, `3,725.3 TB`."""
    for unit, step in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if nbytes >= step:
            return f"{nbytes / step:,.1f} {unit}"
    return f"{nbytes} B"


def number_text(number: float) -> str:
    """A measured number as a message says it, to three digits: `0.43`, `1,799`, `8.81e+32`."""
    return f"{number:,.0f}" if 1_000 <= abs(number) < 1_000_000 else f"{number:.3g}"  # noqa: PLR2004


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
