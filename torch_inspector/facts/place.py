"""Where something is: a line, a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Shape = tuple[int, ...]
LayerCounts = tuple[tuple[str, int], ...]
"""Kinds of layers and how many of each: `(("Dropout", 2), ("BatchNorm1d", 1))`."""


class Place(NamedTuple):
    """A line of the user's own code."""

    cell: int | None = None
    """Number of the cell which holds the line; None outside notebooks."""
    line: int | None = None
    """Line as typed in that cell or file, from 1; None where it is not known."""
    function: str = ""
    """Function which holds the line; empty at the top level of a cell."""

    @property
    def scope(self) -> tuple[int | None, str]:
        """The cell and the function: lines of one of these run in one text."""
        return self.cell, self.function

    def said_in(self, cell: int | None) -> str:
        """The line in words, with its cell where that is not the given one: `line 3 of cell 2`."""
        return f"line {self.line}" + (f" of cell {self.cell}" if self.cell not in (cell, None) else "")


@dataclass(frozen=True)
class Cell:
    """One execution, as far as it is known when it starts."""

    number: int | None
    """Execution count; None outside notebooks."""
    id: str | None
    """The front end's id of the cell, where it sends one."""
    source: str
    """The text as typed."""
    code: str
    """The Python that runs: magics replaced, leading blank lines gone."""
    line_offset: int = 0
    """What to add to a line of `code` to get the line of `source`."""
    body_offset: int = 0
    """The same for code that a cell magic such as `%%time` runs on its own."""
    wants_report: bool = False
    """True if the cell asked for the full report (`%%torchcheck`)."""
