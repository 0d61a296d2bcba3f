"""The variable of a cell that is infinite first, by its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact

# A number that float16 does not hold, as in a mask of -1e9: minus infinity alone is often meant, NaN after it is not.
_BEYOND = re.compile(r"\b\d+(\.\d*)?e\+?([5-9]|\d\d)\b", re.IGNORECASE)
_LOG = re.compile(r"\blog(2|10)?\(")


def first_infinite(run: Run) -> tuple[int, ExtremeFact] | None:
    """The variable that comes first in the text of the cell, with its line."""
    spoiled = any(one.nan_count for one in run.after.extremes) and _BEYOND.search(run.cell.code) is not None
    known = _is_known(run)
    infinite = (one for one in run.after.extremes if one.inf_count > 0 or (spoiled and one.negative_inf_count > 0))
    divided = set(divided_by_zero(run))
    found = (one for one in infinite if not (known and one.computed) and one.path not in divided)
    places = ((giving_line(run, one.path), one) for one in found)
    return min(((line, one) for line, one in places if line is not None), key=lambda pair: pair[0], default=None)


def divided_by_zero(run: Run) -> list[str]:
    """Variables that are infinite by a division by zero, as far as it can be told; several may be of one line."""
    return [fact.target for fact in run.after.expressions if fact.kind == "zero-divided"]


def _is_known(run: Run) -> bool:
    """True if the operation is known that was given what it cannot take: `nonfinite-loss` tells it."""
    loss = run.first_nonfinite_loss()
    return loss is not None and loss.operation is not None and bool(loss.operation.cause)


def giving_line(run: Run, path: str) -> int | None:
    """The line of the cell that gives the variable of a path its value, or adds to it."""
    name = re.escape(re.split(r"[.\[]", path)[0])
    gives = re.compile(rf"(^|[\s,(;]){name}\b[^=()]*[-+*/@]?=(?!=)|\b{name}\.(append|mul_|add_|copy_|extend)\(")
    lines = run.cell.source.splitlines()
    return next((number for number, line in enumerate(lines, 1) if name and gives.search(line)), None)


def takes_logarithms(run: Run) -> bool:
    """True if the cell, or a function of an earlier one, takes a logarithm."""
    cells = (past.cell.source for past in run.earlier)
    inside = (line for source in cells for line in source.splitlines() if line[:1].isspace())
    return any(_LOG.search(text) for text in (run.cell.source, *inside))
