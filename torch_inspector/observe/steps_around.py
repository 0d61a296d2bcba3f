"""Whether a line runs again and again between optimizer steps, or after them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch_inspector.facts import Place, StepFact, syntax
from torch_inspector.facts.leading import Leading, leading_to
from torch_inspector.observe.lines import loops_around
from torch_inspector.observe.place import CodeFile


class _Region(NamedTuple):
    """Lines that a loop with steps runs again and again."""

    file: CodeFile
    first: int
    last: int


def is_run_in_turns(
    function: str, node: ast.expr, file: CodeFile, steps: list[StepFact], files: list[CodeFile]
) -> bool:
    """True if a loop that has stepped runs an expression, or calls the function that it stands in.

    Args:
        function: That function; empty for none.
        node: The expression.
        file: The cell that it is in.
        steps: Steps of the cell that is done.
        files: Code of all cells.
    """
    leading = _leading(function, files)
    for region in _regions(steps, files):
        if region.file == file and region.first <= node.lineno <= region.last:
            return True
        if leading is not None and any(map(leading.named_in, _called(region))):
            return True
    return False


def stepped_after(
    filled: tuple[CodeFile, int],
    used: tuple[CodeFile, int],
    stepped: Sequence[tuple[CodeFile, list[StepFact]]],
    files: list[CodeFile],
) -> frozenset[int]:
    """Parameters that were stepped between a line of the one cell and a line of the other, the latest one."""
    found = frozenset[int]()
    for file, steps in stepped:
        if (file.cell or 0) < (filled[0].cell or 0):
            continue
        begin = filled[1] if file.cell == filled[0].cell else 0
        end = used[1] if file.cell == used[0].cell else 1 << 30
        for one in steps:
            if any(begin < line < end for line in _lines_of(one.place, file, files)):
                found |= one.parameter_keys
    return found


def _leading(function: str, files: list[CodeFile]) -> Leading | None:
    """What may run a function when it is called; None without one."""
    return leading_to([function], [one.tree for one in files if one.tree is not None]) if function else None


def _regions(steps: list[StepFact], files: list[CodeFile]) -> Iterator[_Region]:
    """Loops around the steps; and where a function that makes one has no loop, those that call it, and its body."""
    for place in dict.fromkeys(one.place for one in steps):
        file = next((one for one in files if one.cell == place.cell and one.tree is not None), None)
        if file is None or file.tree is None or place.line is None:
            continue
        line = place.line - file.offset
        loops = loops_around(file.tree, line)
        yield from (_Region(file, *ends) for ends in loops)
        body = syntax.function_around(file.tree, line) if not loops else None
        leading = _leading(body.name, files) if body is not None else None
        around = list(_loops_calling(leading, files)) if leading is not None else []
        yield from around
        if around and body is not None:
            yield _Region(file, body.lineno, body.end_lineno or body.lineno)


def _loops_calling(leading: Leading, files: list[CodeFile]) -> Iterator[_Region]:
    """Loops with a call of one of these functions."""
    for file in files:
        for node in syntax.walk(file.tree) if file.tree is not None else ():
            if isinstance(node, (ast.For, ast.While)):
                calls = (one.func for one in syntax.walk(node) if isinstance(one, ast.Call))
                if any(map(leading.named_in, calls)):
                    yield _Region(file, node.lineno, node.end_lineno or node.lineno)


def _called(region: _Region) -> Iterator[ast.expr]:
    """What the lines call."""
    nodes = syntax.walk(region.file.tree) if region.file.tree is not None else ()
    calls = (one for one in nodes if isinstance(one, ast.Call))
    return (one.func for one in calls if region.first <= one.lineno <= region.last)


def _lines_of(place: Place, file: CodeFile, files: list[CodeFile]) -> list[int]:
    """Lines of a cell, outside of its functions, that have made a step."""
    if not place.function:
        return [(place.line or 0) - file.offset] if place.cell == file.cell else []
    leading = _leading(place.function, files)
    nodes = syntax.own_expressions(file.tree) if file.tree is not None else ()
    calls = [one for one in nodes if isinstance(one, ast.Call)] if leading is not None else []
    return [one.lineno for one in calls if leading is not None and leading.named_in(one.func)]
