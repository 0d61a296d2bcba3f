"""Lines that step along a gradient without an optimizer, and what the texts do to gradients beside that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts.cleared_after import cleared_after
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.place import Cell
    from torch_inspector.facts.run import Run

# Longer lines, as an image written as text is, are not read: these patterns take the square of the length of a line.
_LONG = 1_000
_NAME = r"(?<!\w)[^\W\d]\w*(?:\.\w+|\[[^\[\]]*\])*?"
# A step written by hand.
_BY_HAND = re.compile(r"-=.*\.grad\b|\.(sub_|add_|copy_|addcmul_|addcdiv_)\(.*\.grad\b|\.data\s*=[^=].*\.grad\b")
# What it changes.
_STEPPED = re.compile(
    rf"({_NAME})(?:\s*-=|\.(?:sub|add|copy|addcmul|addcdiv)_\(|\.data\s*=(?!=))(?=[^;]*\.grad\b)"
)  # fmt: skip
# What clears gradients, or changes them on purpose.
_CHANGES = re.compile(
    r"\.grad(\.data)?\s*([*/+-]?=)(?!=)|\.grad(\.data)?\.(detach_?\(\)\.)?(zero_|mul_|div_|fill_|copy_)|zero_grad\b"
    r"|del .*\.grad\b|autograd\.grad\(|_foreach_"
)
# One gradient cleared whole, by the name of what it belongs to.
_CLEARED = re.compile(rf"({_NAME})\.grad(?:\s*=\s*(?=None\b|{_NAME}\.grad\s*=)|(?:\.data)?\.zero_\(\))")


class HandSteps(NamedTuple):
    """The steps of one cell whose gradients nothing clears."""

    cell: int | None
    line: int
    """Of the first."""
    text: str
    owners: tuple[str, ...]
    """What they change: `p` of `for p in ps: p -= lr * p.grad`."""

    def cleared(self, run: Run) -> str:
        """The statement that clears these gradients."""
        if len(self.owners) == 1:
            return cleared_after(run, Place(self.cell, self.line), self.owners[0])
        return f"{' = '.join(f'{one}.grad' for one in self.owners)} = None  # after each step"


def steps_by_hand(run: Run) -> HandSteps | None:
    """The latest such steps; None if there are none, or a cell does something to gradients that has no such name."""
    cells = [one.cell for one in (run, *reversed(run.earlier))]
    cleared, stepped = _cleared(cells), {owner for cell in cells for *_, owner in _steps(cell)}
    if cleared is None or not cleared <= stepped:
        return None
    for cell in cells:
        found = [one for one in _steps(cell) if one[2] not in cleared]
        if found:
            line, text, _ = found[0]
            return HandSteps(cell.number, line, text, tuple(dict.fromkeys(owner for *_, owner in found)))
    return None


def changes_gradients(run: Run) -> bool:
    """True if the cell clears or changes gradients other than by `zero_grad()`."""
    return any("zero_grad" not in found[0] for found in _CHANGES.finditer(run.cell.source))


def _cleared(cells: list[Cell]) -> set[str] | None:
    """Of what the gradients are cleared, each by its name; None if some are cleared or changed in another way."""
    found = set[str]()
    for line in (line.split("#")[0] for cell in cells for line in cell.source.splitlines()):
        if len(line) > _LONG:
            if "grad" in line or "_foreach_" in line:
                return None
        elif _CHANGES.search(line):
            owners = _CLEARED.findall(line)
            if len(owners) < len(_CHANGES.findall(line)):
                return None
            found.update(owners)
    return found


def _steps(cell: Cell) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(cell.source.splitlines(), 1):
        text = line.split("#")[0]
        if len(text) <= _LONG and _BY_HAND.search(text):
            yield from ((number, line.strip(), owner.removesuffix(".data")) for owner in _STEPPED.findall(text))
