"""Whether what a cell did at a line, it did again in a later run: steps, calls and batches, else what surely runs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from difflib import SequenceMatcher
from math import prod
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Cell
from torch_inspector.facts.run import Run

# A line that was mended is mostly what it was.
_ALIKE = 0.6
_NUMBER = re.compile(r"(?<![\w.])[\d_]*\.?\d[\d_]*(?:e[+-]?\d+)?", re.IGNORECASE)
_BATCHES = "batches"
# What a cell is about: its training, else its calls.
_MAIN = ("backward", "forward", _BATCHES)


class _Done(NamedTuple):
    kind: str
    cell: int | None
    line: int | None
    count: int


def done_again(last: Run, run: Run, cell: int | None, line: int | None, code: str = "") -> bool | None:
    """True if a run did as much of what the last one did at a line, or around it; None if nothing there is counted.

    Args:
        last: The run in which something was wrong at that line.
        run: A later one.
        cell: Number of the cell that holds the line.
        line: As typed, from 1.
        code: Its text.
    """
    here = cell in (None, last.cell.number)
    again = line_again(run.cell, code) if here else None
    if line is not None and again is not None and _has_fewer_turns(run.cell, again, _turns(last.cell, line)):
        return False
    done = _all_done(last)
    before, now = _totals(done), _totals(_all_done(run))
    if not before:
        made = last.trace.graph_nodes_made
        return run.trace.graph_nodes_made >= made if made else None
    tree = _tree(last.cell.source if here else run.source_of(cell))
    there = _kinds(done, cell, _lines_of(tree, line))
    failed, left_out = last.error is not None, bool(before["backward"] and not now["backward"])
    enough_there = any(_enough(kind, before, now, run) for kind in there) or _is_done_at(again, there, run)
    if enough_there and not left_out:
        return True
    if there and (failed or left_out or not any(now[kind] for kind in there)):
        return False
    around = _around(tree, line, done, cell, before)
    if not (around or there):
        return None
    # What came before the mistake in a turn was done once more than what came behind it.
    enough = [_enough(kind, before, now, run) for kind in around]
    return (all(enough) if failed else any(enough)) and not left_out


def line_again(cell: Cell, code: str) -> int | None:
    """The line of a cell that a line of an earlier version of it has become: the same, or the most alike."""
    wanted, best, found = _bare(code), _ALIKE, None
    if not wanted:
        return None
    for number, line in enumerate(cell.source.splitlines(), 1):
        bare = _bare(line)
        alike = 2.0 if bare == wanted else SequenceMatcher(None, bare, wanted, autojunk=False).ratio() if bare else 0.0
        if alike >= best and (found is None or alike > best):
            best, found = alike, number
    return found


def surely_runs(cell: Cell, line: int) -> bool:
    """True if a cell that ends well has run a line: no branch, function or loop that may be empty is around it."""
    tree = _tree(cell.source)
    body: list[ast.stmt] = tree.body if tree is not None else []
    while True:
        here = next((one for one in body if syntax.spans(one, line)), None)
        if here is None:
            return False
        if isinstance(here, (ast.With, ast.AsyncWith)) or (isinstance(here, ast.For) and _has_turns(here)):
            if here.lineno <= line < here.body[0].lineno:
                return True
            body = here.body
            continue
        return not isinstance(here, (*syntax.INNER, *syntax.LOOPS, ast.If, ast.Try, ast.Match))


def only_numbers_differ(one: str, other: str) -> bool:
    """True for texts that are the same but for numbers in them: fewer turns, smaller tensors."""
    return _NUMBER.sub("0", _code(one)) == _NUMBER.sub("0", _code(other))


def _all_done(run: Run) -> list[_Done]:
    counted = [_Done(one.kind, one.place.cell, one.place.line, one.count) for one in run.trace.counts if one.count]
    loaders = run.trace.loaders
    return counted + [_Done(_BATCHES, one.place.cell, one.place.line, one.batch_count) for one in loaders]


def _totals(done: list[_Done]) -> Counter[str]:
    totals = Counter[str]()
    for one in done:
        totals[one.kind] += one.count
    return +totals


def _kinds(done: list[_Done], cell: int | None, lines: range) -> Counter[str]:
    return _totals([one for one in done if one.cell == cell and one.line is not None and one.line in lines])


def _enough(kind: str, before: Counter[str], now: Counter[str], run: Run) -> bool:
    """True for as many as before; a pass over a loader may have been mended by leaving its last batch out."""
    spared = sum(one.pass_count for one in run.trace.loaders) if kind == _BATCHES else 0
    return 0 < before[kind] <= now[kind] + (spared if now[kind] else 0)


def _is_done_at(again: int | None, there: Counter[str], run: Run) -> bool:
    """The same, of the line that it has become, whatever became of the rest of the cell."""
    if again is None:
        return False
    now = _kinds(_all_done(run), run.cell.number, _lines_of(_tree(run.cell.source), again))
    return any(_enough(kind, there, now, run) for kind in there)


def _turns(cell: Cell, line: int) -> list[int]:
    """How many turns each loop around a line makes; 1 for those that do not say it."""
    tree = _tree(cell.source)
    loops = [one for one in syntax.walk(tree) if isinstance(one, ast.For)] if tree is not None else []
    return [_length(one.iter, 1) for one in loops if syntax.spans(one, line)]


def _has_fewer_turns(cell: Cell, line: int, before: list[int]) -> bool:
    """True for a line in as many loops as before that make fewer turns together; out of its loop it may be mended."""
    now = _turns(cell, line)
    return len(now) == len(before) and prod(now) < prod(before)


def _around(
    tree: ast.Module | None, line: int | None, done: list[_Done], cell: int | None, before: Counter[str]
) -> list[str]:
    """Kinds in the innermost loop around a line; of a function, and of no line at all, what the cell is about."""
    loop = _loop_of(tree, line)
    kinds = list(_kinds(done, cell, _span(loop))) if loop is not None else []
    known = tree is not None and line is not None and bool(_kinds(done, cell, _lines_of(tree, line)))
    inside = tree is not None and line is not None and syntax.function_around(tree, line) is not None
    if kinds or not (known or inside or line is None):
        return kinds
    return [kind for kind in _MAIN if before[kind]][:1]


def _tree(source: str) -> ast.Module | None:
    """The text as typed, without its magics, so that lines stay what they are."""
    lines = source.splitlines()
    bare = (line.lstrip() for line in lines)
    plain = [
        line[: len(line) - len(text)] + "pass" * (not text.startswith("%%")) if text.startswith(("%", "!")) else line
        for line, text in zip(lines, bare, strict=True)
    ]
    return syntax.parse("\n".join(plain))


def _lines_of(tree: ast.Module | None, line: int | None) -> range:
    """The lines of the innermost statement there; of a compound one, those of its head."""
    if line is None:
        return range(0)
    around = (one for one in syntax.walk(tree) if isinstance(one, ast.stmt)) if tree is not None else ()
    here = max((one for one in around if syntax.spans(one, line)), key=lambda one: one.lineno, default=None)
    if here is None:
        return range(line, line + 1)
    body = getattr(here, "body", None)
    return range(here.lineno, max(here.lineno + 1, body[0].lineno) if body else (here.end_lineno or line) + 1)


def _loop_of(tree: ast.Module | None, line: int | None) -> ast.stmt | None:
    """The innermost loop around a line."""
    if tree is None or line is None:
        return None
    loops = (one for one in syntax.walk(tree) if isinstance(one, syntax.LOOPS) and syntax.spans(one, line))
    return max(loops, key=lambda one: one.lineno, default=None)


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _has_turns(loop: ast.For) -> bool:
    """True for a loop over `range(4)` or a list that is written there, all of whose turns come to their end."""
    if any(isinstance(one, (ast.Break, ast.Continue)) for one in syntax.walk(loop)):
        return False
    return _length(loop.iter, 0) > 0


def _length(over: ast.expr, unknown: int) -> int:
    """How many turns a loop makes, where its text says so."""
    if isinstance(over, (ast.List, ast.Tuple)):
        return unknown if any(isinstance(one, ast.Starred) for one in over.elts) else len(over.elts)
    numbers = over.args if isinstance(over, ast.Call) and syntax.name_of(over.func) == "range" else []
    known = [one.value for one in numbers if isinstance(one, ast.Constant) and type(one.value) is int]
    return len(range(*known)) if known and len(known) == len(numbers) and 0 not in known[2:] else unknown


def _bare(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"(?:^|\s)#.*", "", line)).strip()


def _code(source: str) -> str:
    lines = (_bare(line) for line in source.splitlines() if not line.lstrip().startswith("%%"))
    return "\n".join(line for line in lines if line)
