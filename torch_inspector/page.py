"""The page of a pitfall: explanation, runnable examples and sources in one Markdown file."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADINGS = ("Why it hurts", "Bad", "Good", "Not flagged", "Sources")
MARK = "# finding"
_FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One page, cut at its headings."""

    title: str
    """What a beginner would say went wrong."""
    summary: str
    """First paragraph: what the pitfall sees."""
    sections: dict[str, str]
    """Text under each of `HEADINGS`."""
    text: str
    """The whole file."""

    @classmethod
    def parse(cls, text: str) -> Page:
        """Reads a page.

        Raises:
            ValueError: the title or one of `HEADINGS` is missing, unknown or out of order.
        """
        head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
        title, _, lead = head.strip().partition("\n")
        names = tuple(part.partition("\n")[0].strip() for part in parts)
        if not title.startswith("# ") or names != HEADINGS:
            raise ValueError(f"a page needs a title and the headings {HEADINGS}, not {title!r} and {names}")
        bodies = (part.partition("\n")[2].strip() for part in parts)
        summary = " ".join(lead.strip().split("\n\n")[0].split())
        return cls(title[2:].strip(), summary, dict(zip(HEADINGS, bodies, strict=True)), text)

    def blocks(self, heading: str) -> tuple[str, ...]:
        """The Python blocks under a heading; each is one notebook cell, run in order."""
        return tuple(_FENCE.findall(self.sections[heading] + "\n"))
