"""What views call a cell and a line of it."""

from __future__ import annotations

from torch_inspector.facts import Run


def cell_name(run: Run) -> str:
    """What to call the run in a title."""
    return "torch_inspector" if run.cell.number is None else f"torch_inspector, cell {run.cell.number}"


def line_name(line: int | None, cell: int | None, here: int | None) -> str:
    """A line as seen from the cell `here`: `line 3`, `line 3 of cell 2`; empty if nothing is known."""
    other = f"cell {cell}" if cell is not None and cell != here else ""
    return " of ".join(filter(None, ("" if line is None else f"line {line}", other)))
