"""What the text of functions calls a value that only the graph behind a loss shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.place import Cell
    from torch_inspector.facts.run import Run

# Lines between the one that makes a value and the one that hands it on.
_NEAR = 15


def handed_on(run: Run, maker: str, reader: str) -> tuple[str, Place] | None:
    """The only variable that is made by one function and given to another, and the line that gives it.

    Args:
        run: Its cell is read, and those before it.
        maker: What makes the value: `softmax`.
        reader: What it is given to, as its first argument: `cross_entropy`.
    """
    cells = {past.cell.source: past.cell for past in (*run.earlier, run)}
    found = {one for cell in cells.values() for one in _handed_on_in(cell, maker, reader)}
    return found.pop() if len(found) == 1 else None


def _handed_on_in(cell: Cell, maker: str, reader: str) -> Iterator[tuple[str, Place]]:
    makes = re.compile(rf"^\s*(\w+)\s*=(?!=).*\b{maker}\(")
    lines = cell.source.splitlines()
    for number, text in enumerate(lines):
        made = makes.match(text)
        reads = re.compile(rf"\b{reader}\(\s*{made[1]}\b") if made else None
        for later, line in enumerate(lines[number + 1 : number + 1 + _NEAR], number + 2):
            if reads is not None and reads.search(line):
                yield (made[1] if made else ""), Place(cell.number, later)


def with_article(word: str) -> str:
    """`an Experiment`, `a Trainer`."""
    return f"{'an' if word[:1].lower() in 'aeio' and word else 'a'} {word}"
