"""The text of a cell: where its lines are after IPython has transformed it, and whether it asks for the report."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from IPython.core.inputtransformer2 import leading_indent

from torch_inspector.facts import Cell
from torch_inspector.notebook.options import ReportFiles, report_files

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
    first = _blank_lines(lines)
    head = _magic_lines(lines, first)
    wants_report = any(asks_for_report(lines[i]) for i in head)
    dropped = 0
    if head and _is_taken_out(lines[first]):
        following = first + 1 + _blank_lines(lines[first + 1 :])
        dropped = following - first if following in head else 0
    return Cell(number, cell_id, raw, code, first + dropped, _body_offset(lines, head), wants_report)


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
    inner = make_cell(raw, code, outer.number, outer.id)
    body = inner.body_offset + above if inner.body_offset else 0
    return replace(
        inner, source=outer.source, line_offset=inner.line_offset + above, body_offset=body, wants_report=False
    )


def asks_for_report(line: str) -> bool:
    """True for the first line of a `%%torchcheck` cell."""
    return line.split(maxsplit=1)[:1] == [REPORT]


def files_of(source: str) -> ReportFiles:
    """The files that the report of a cell goes to; none if its words are not understood."""
    lines = source.splitlines()
    for at in _magic_lines(lines, _blank_lines(lines)):
        if asks_for_report(lines[at]):
            with contextlib.suppress(ValueError):
                return report_files(_words(lines[at]))
    return ReportFiles()


def _is_taken_out(line: str) -> bool:
    """True for a `%%torchcheck` line without words, or with words that are understood."""
    if not asks_for_report(line):
        return False
    try:
        report_files(_words(line))
    except ValueError:
        return False
    return True


def _words(line: str) -> str:
    """What stands behind the magic."""
    return "".join(line.split(maxsplit=1)[1:])


def take_out_report(lines: list[str]) -> list[str]:
    """Input transformer: turns `%%torchcheck` into a comment, so that the cell runs as if it were not there.

    Await, magics, errors and line numbers are then IPython's own. Before another cell magic the line is dropped,
    because that magic has to come first. With words that are not understood the line stays, and the magic answers.
    """
    if not lines or not _is_taken_out(lines[0]):
        return lines
    blank = 1 + _blank_lines(lines[1:])
    if _drops_first_line(lines):
        return lines[blank:]
    return ["# " + lines[0], *lines[1:blank], *leading_indent(lines[blank:])]


# `check_complete` leaves out transformers that say so: a terminal then waits for the end of the cell.
take_out_report.has_side_effects = True  # type: ignore[attr-defined]


def _drops_first_line(lines: list[str]) -> bool:
    rest = next((line for line in lines[1:] if line.strip()), "")
    return rest.startswith("%%")


def _blank_lines(lines: list[str]) -> int:
    """Leading lines that IPython takes away."""
    return next((i for i, line in enumerate(lines) if line.strip()), 0)


def _magic_lines(lines: list[str], first: int) -> list[int]:
    """Indices of the cell magics on top of the cell."""
    found, here = [], first
    while here < len(lines) and (lines[here].startswith("%%") or not lines[here].strip()):
        if lines[here].startswith("%%"):
            found.append(here)
        here += 1
    return found


def _body_offset(lines: list[str], head: list[int]) -> int:
    """Lines before the code that cell magics run; 0 if there are no cell magics."""
    others = [i for i in head if not asks_for_report(lines[i])]
    if not others:
        return 0
    last = head[-1]
    if asks_for_report(lines[last]):
        return last  # it stays in the body, as a comment
    return last + 1 + _blank_lines(lines[last + 1 :])
