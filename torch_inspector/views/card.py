"""The one form that every view draws: a title and a few kinds of parts.

A card is harmless by construction: whatever is put into it, its texts are cut to a length, can be encoded, and hold no
unseen characters. It holds no markup of any view's language either, so each view escapes all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch_inspector.views.plain import block, one_line

Tone = Literal["error", "warning", "hint", "calm"]
SHAPES: dict[Tone, str] = {"error": "■", "warning": "▲", "hint": "●", "calm": ""}
"""The mark before a toned text, so that nobody has to tell colours apart."""

TITLE_LIMIT = 160
"""Long enough for a sentence with names and numbers, short enough for a panel under a cell."""
_SUMMARY_LIMIT = 400
_LINE_LIMIT = 600
_CELL_LIMIT = 120
_CODE_LIMIT = 2_000
# Pages have 80 lines of at most 120 characters.
_PROSE_LIMIT = 20_000
_PROSE_LINES = 400
# Names of our own pages.
_SLUG = re.compile(r"[a-z0-9-]{1,80}")
ADDRESS = re.compile(r"https?://[\w.~:/@!$&()*+,;=%-]{1,400}", re.ASCII)
"""What may stand in the address of a link: a place that the user has configured."""


@dataclass(frozen=True)
class Line:
    """A sentence; as everywhere in a card, what stands between backticks is code."""

    kind: ClassVar[str] = "line"
    text: str
    tone: Tone = "calm"
    strong: bool = False
    slug: str = ""
    """The pitfall whose page the line leads to, where a view can follow it."""
    address: str = ""
    """Where that page is on the web; empty if it is nowhere."""

    def __post_init__(self) -> None:
        _hold(self, "text", one_line(self.text, _LINE_LIMIT))
        _hold(self, "slug", self.slug if _SLUG.fullmatch(self.slug) else "")
        _hold(self, "address", self.address if ADDRESS.fullmatch(self.address) else "")


@dataclass(frozen=True)
class Code:
    """Code to read or to copy."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = "python"
    caption: str = ""
    """What stands above it: `line 3`, `Fix`."""
    first: int = 0
    """Number of the first line; 0 for code without numbers."""
    guilty: int = 0
    """Number of the line that is meant."""

    def __post_init__(self) -> None:
        _hold(self, "text", block(self.text, _CODE_LIMIT))
        _hold(self, "language", one_line(self.language, _CELL_LIMIT))
        _hold(self, "caption", one_line(self.caption, TITLE_LIMIT))

    def numbered(self) -> list[tuple[str, str, bool]]:
        """Each line with its number as wide as the widest, and whether it is the one that is meant."""
        lines = self.text.split("\n")
        width = len(str(self.first + len(lines) - 1))
        return [(f"{n:{width}}", line, n == self.guilty) for n, line in enumerate(lines, self.first)]


@dataclass(frozen=True)
class Table:
    """Rows of short texts; the first of each row names it."""

    kind: ClassVar[str] = "table"
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()
    """Names of the columns; empty for pairs of label and value, which need none."""
    caption: str = ""
    figures: tuple[int, ...] = ()
    """Columns that hold numbers, by position; they are drawn flush right."""
    boxes: tuple[tuple[int, int, int, int], ...] = ()
    """A picture per row: width and height of a box, and of the one that it was stretched to."""
    curve: tuple[tuple[int, int], ...] = ()
    """A picture of the whole: points in thousandths of its width and of its height, upwards."""

    def __post_init__(self) -> None:
        _hold(self, "rows", tuple(_cells(row) for row in self.rows))
        _hold(self, "columns", _cells(self.columns))
        _hold(self, "caption", one_line(self.caption, TITLE_LIMIT))
        _hold(self, "boxes", tuple((*map(_thousandths, box),) for box in self.boxes))
        _hold(self, "curve", tuple((*map(_thousandths, point),) for point in self.curve))


@dataclass(frozen=True)
class Bars:
    """Amounts as bars, each with its label."""

    kind: ClassVar[str] = "bars"
    rows: tuple[tuple[str, str], ...]
    """Label and amount of each."""
    lengths: tuple[int, ...]
    """Length of each bar in thousandths of the longest possible."""
    caption: str = ""

    def __post_init__(self) -> None:
        _hold(self, "rows", tuple(_cells(row) for row in self.rows))
        _hold(self, "lengths", tuple(map(_thousandths, self.lengths)))
        _hold(self, "caption", one_line(self.caption, TITLE_LIMIT))


@dataclass(frozen=True)
class Prose:
    """Paragraphs in Markdown, out of a page."""

    kind: ClassVar[str] = "prose"
    text: str

    def __post_init__(self) -> None:
        _hold(self, "text", block(self.text, _PROSE_LIMIT, _PROSE_LINES))


@dataclass(frozen=True)
class Details:
    """Parts that are folded away where a view can fold."""

    kind: ClassVar[str] = "details"
    summary: str
    parts: tuple[Part, ...]
    more: str = ""
    """What to type to read more. A view that cannot fold draws this in place of the parts; empty: it draws them."""
    tone: Tone = "calm"
    """Of a finding its severity. A view that cannot fold draws a closed finding as its summary alone."""
    open: bool = False
    slug: str = ""
    """The pitfall that it is about, if it is a finding."""
    lead: str = ""
    """How the summary begins: severity and line, which are drawn strong."""

    def __post_init__(self) -> None:
        _hold(self, "summary", one_line(self.summary, _SUMMARY_LIMIT))
        _hold(self, "more", one_line(self.more, TITLE_LIMIT))
        _hold(self, "slug", one_line(self.slug, _CELL_LIMIT))
        _hold(self, "lead", self.lead if self.summary.startswith(self.lead) else "")


@dataclass(frozen=True)
class Card:
    """A title over parts; inside another card, a section of it."""

    kind: ClassVar[str] = "card"
    title: str
    tone: Tone
    parts: tuple[Part, ...]
    slug: str = ""
    """The pitfall that it is about, if it is about one."""

    def __post_init__(self) -> None:
        _hold(self, "title", one_line(self.title, TITLE_LIMIT))
        _hold(self, "slug", one_line(self.slug, _CELL_LIMIT))


Part = Line | Code | Table | Bars | Prose | Details | Card


def _thousandths(length: int) -> int:
    return min(max(int(length), 0), 1_000)


def _cells(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(text, _CELL_LIMIT) for text in texts)


_hold: Callable[[object, str, object], None] = object.__setattr__
