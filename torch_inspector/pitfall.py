"""How a pitfall is declared: a check beside its page.

`pitfalls/<subject>/<name>.py` holds one function `check` under `@pitfall(...)`; `<name>.md` beside it is the
explanation, the examples and the test. Nothing is registered anywhere: slug, subject and summary follow from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding, Severity
from torch_inspector.page import Page

Check = Callable[[Run], Iterable[Finding]]


@dataclass(frozen=True)
class Pitfall:
    """One known mistake: how it is found and how it is explained."""

    slug: str
    subject: str
    severity: Severity
    check: Check
    page_path: Path
    yields_to: tuple[str, ...] = ()
    """Slugs that say more about the same line: a finding of ours is left out where one of theirs stands."""
    early: bool = False
    """True if it reads steps and backward calls only, so that no later event of the cell can make it wrong."""

    @cached_property
    def page(self) -> Page:
        """The explanation.

        Raises:
            OSError: the page is missing.
            ValueError: a heading is missing or out of order.
        """
        return Page.parse(self.page_path.read_text(encoding="utf-8"))


def pitfall(*, severity: Severity, early: bool = False, yields_to: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Marks `check` as the check of the file's pitfall.

    Args:
        severity: Holds unless a finding says otherwise.
        early: True if steps and backward calls alone decide: it is then asked while the cell runs, too.
        yields_to: Slugs that say more about the same line, where they find something.
    """

    def mark(check: Check) -> Check:
        check.severity = severity  # type: ignore[attr-defined]
        check.yields_to = yields_to  # type: ignore[attr-defined]
        check.early = early  # type: ignore[attr-defined]
        return check

    return mark


def from_check(check: Check) -> Pitfall:
    """The pitfall that a marked check stands for; names follow from its file."""
    path = Path(check.__code__.co_filename)
    return Pitfall(
        slug=path.stem.replace("_", "-"),
        subject=path.parent.name,
        severity=check.severity,  # type: ignore[attr-defined]
        check=check,
        page_path=path.with_suffix(".md"),
        yields_to=check.yields_to,  # type: ignore[attr-defined]
        early=check.early,  # type: ignore[attr-defined]
    )


def of_measured(fact: ExpressionFact, message: str, fix: str) -> Finding:
    """A hint on a loss that is only measured, told from the text: its names are the loss and what it was given."""
    return Finding(
        message=message,
        subject=fact.names[0],
        fix=fix,
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint",
        evidence=(Evidence("loss", fact.text), Evidence("input", fact.names[1])),
    )
