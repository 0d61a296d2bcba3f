"""The text of a cell: where its lines are after IPython has transformed it, and whether it asks for the report."""

from __future__ import annotations

from torch_inspector.facts import Cell

REPORT = "%%torchcheck"


def make_cell(raw: str, code: str, number: int | None, cell_id: str | None) -> Cell:
    """A cell from what IPython is about to run.

    Args:
        raw: As typed.
        code: As it will run.
        number: Execution count.
        cell_id: The front end's id, if it sends one.
    """
    lines = raw.splitlines()
    blank = _blank_lines(lines)
    wants_report = asks_for_report(lines[blank] if blank < len(lines) else "")
    dropped = 1 if wants_report and _drops_first_line(lines[blank:]) else 0
    body = _body_offset(lines, blank, wants_report=wants_report)
    return Cell(number, cell_id, raw, code, blank + dropped, body, wants_report)


def nested_cell(raw: str, code: str, outer: Cell) -> Cell | None:
    """The same for code that a cell magic of `outer` runs as a cell of its own; None for anything else."""
    lines, all_lines = raw.splitlines(), outer.source.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    while all_lines and not all_lines[-1].strip():
        all_lines.pop()
    above = len(all_lines) - len(lines)
    if not lines or above <= 0 or all_lines[above:] != lines:
        return None
    blank = _blank_lines(lines)
    body = _body_offset(lines, blank, wants_report=False)
    return Cell(outer.number, outer.id, outer.source, code, above + blank, above + body if body else 0)


def asks_for_report(line: str) -> bool:
    """True for the first line of a `%%torchcheck` cell."""
    return line.split(maxsplit=1)[:1] == [REPORT]


def take_out_report(lines: list[str]) -> list[str]:
    """Input transformer: turns `%%torchcheck` into a comment, so that the cell runs as if it were not there.

    Await, magics, errors and line numbers are then IPython's own. Before another cell magic the line is dropped,
    because that magic has to come first. With words behind it the line stays, and the magic answers.
    """
    if not lines or lines[0].strip() != REPORT:
        return lines
    return lines[1:] if _drops_first_line(lines) else ["# " + lines[0], *lines[1:]]


def _drops_first_line(lines: list[str]) -> bool:
    rest = next((line for line in lines[1:] if line.strip()), "")
    return rest.startswith("%%")


def _blank_lines(lines: list[str]) -> int:
    """Leading lines that IPython takes away."""
    return next((i for i, line in enumerate(lines) if line.strip()), 0)


def _body_offset(lines: list[str], first: int, *, wants_report: bool) -> int:
    """Lines before the code that cell magics run; 0 if there are no cell magics."""
    start = first + 1 if wants_report else first
    while start < len(lines) and not lines[start].strip() and wants_report:
        start += 1
    here = start
    while here < len(lines) and lines[here].startswith("%%"):
        here += 1
    return here if here > start else 0
