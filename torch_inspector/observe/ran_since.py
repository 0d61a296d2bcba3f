"""The texts that may have run since some lines did, and the names that their functions can get at.

What follows a line in its scope may have, all of a loop around it, the cells that came later, and the functions that
these name. Each text is gone through once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property, lru_cache
from types import FrameType
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.untested import position

# Lines of the user around one another, and functions that are read.
_DEEP, _FUNCTIONS = 12, 400
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Spot(NamedTuple):
    """A line that was running."""

    file: CodeFile
    line: int


class Stretch(NamedTuple):
    """A part of a scope."""

    scope: ast.AST
    nodes: list[ast.AST]


def way_to(places: Places, frame: FrameType | None) -> tuple[Spot, ...]:
    """The user's lines that lead to a frame, the innermost first."""
    spots: list[Spot] = []
    while len(spots) < _DEEP and (frame := places.user_frame(frame)) is not None:
        file = places.file_of(frame)
        if file is not None:
            spots.append(Spot(file, frame.f_lineno))
        frame = frame.f_back
    return tuple(spots)


class RanSince:
    """The texts after a call of `state_dict()`.

    Args:
        way: The lines that led to it, the innermost first.
        files: Code of the last cells.
    """

    def __init__(self, way: tuple[Spot, ...], files: list[CodeFile]) -> None:
        self._way, self._files = way, files
        self.since = list(_since(way, files))

    def stretches(self) -> Iterator[Stretch]:
        """All that may have run."""
        yield from self.since
        yield from (Stretch(one, list(syntax.own_expressions(one))) for one in self._inside)

    def given_to(self, function: Function) -> set[str] | None:
        """The variables that a function can get at: its own, and those of the calls that lead to it.

        None if it is called where a function has names of its own.
        """
        leading = self._leading_to(function)
        found = set[str]().union(*map(_variables, leading))
        of_python = any(one.name.startswith("__") for one in leading)
        names = self._calls.keys() if of_python else {one.name for one in leading} & self._calls.keys()
        for inside, given in (self._calls[name] for name in names):
            if inside:
                return None
            found |= given
        return found

    @cached_property
    def _inside(self) -> list[Function]:
        """Functions that these texts name, or that those name which they name; Python itself calls `__init__`."""
        known = [one for file in self._files if file.tree is not None for one in syntax.functions_of(file.tree)]
        left = dict.fromkeys(known[:_FUNCTIONS])
        named = {name for stretch in self.since for node in stretch.nodes for name in _names(node)}
        found: list[Function] = []
        while new := [one for one in left if one.name in named or one.name.startswith("__")]:
            found += new
            named = set[str]().union(*map(_named_in, new))
            for one in new:
                del left[one]
        return found

    @cached_property
    def _namers(self) -> dict[str, list[Function]]:
        """Functions by the names in them."""
        found: dict[str, list[Function]] = {}
        for one in self._inside:
            for name in _named_in(one):
                found.setdefault(name, []).append(one)
        return found

    def _leading_to(self, function: Function) -> list[Function]:
        """It, and those that name it, or that name which does."""
        found = {function: None}
        todo = [function]
        while todo:
            new = [one for one in self._namers.get(todo.pop().name, ()) if one not in found]
            found.update(dict.fromkeys(new))
            todo += new
        return list(found)

    @cached_property
    def _calls(self) -> dict[str, tuple[bool, set[str]]]:
        """By the last part of what calls call: whether a function makes one, and the names in all of them.

        Those in lines that were running count too.
        """
        found: dict[str, tuple[bool, set[str]]] = {}
        for scope, nodes in (*self.since, *_running(self._way[1:])):
            for one in nodes:
                for name in _names(one.func) if isinstance(one, ast.Call) else ():
                    inside, given = found.get(name, (False, set[str]()))
                    given |= syntax.names_in(one)
                    found[name] = (inside or isinstance(scope, syntax.FUNCTIONS), given)
        return found


def own_names(scope: ast.AST) -> set[str]:
    """Names that a function gives a value itself; none outside of functions."""
    inside = isinstance(scope, syntax.FUNCTIONS)
    return syntax.parameters_of(scope) | stores_in(scope).keys() if inside else set()


@lru_cache(maxsize=512)
def _variables(function: Function) -> frozenset[str]:
    names = {one.id for one in syntax.own_expressions(function) if isinstance(one, ast.Name)}
    return frozenset(names - own_names(function))


@lru_cache(maxsize=512)
def _named_in(function: Function) -> frozenset[str]:
    return frozenset(name for node in syntax.own_expressions(function) for name in _names(node))


def _names(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    return (node.attr,) if isinstance(node, ast.Attribute) else ()


def _since(way: tuple[Spot, ...], files: list[CodeFile]) -> Iterator[Stretch]:
    """What follows each of the lines in its scope, all of a loop around it, and the cells that came later."""
    for spot in way:
        if spot.file.tree is not None:
            scope = syntax.scope_at(spot.file.tree, spot.line)
            # The line of a call that led to the innermost one is not over.
            start = _end_of_call(scope, spot.line) if spot is way[0] else (spot.line + 1, 0)
            yield Stretch(scope, _after(scope, start, spot.line))
    last = way[-1].file.cell if way else None
    for file in files:
        if file.tree is not None and last is not None and file.cell is not None and file.cell > last:
            yield Stretch(file.tree, list(syntax.own_expressions(file.tree)))


def _running(way: tuple[Spot, ...]) -> Iterator[Stretch]:
    for spot in way:
        if spot.file.tree is not None:
            scope = syntax.scope_at(spot.file.tree, spot.line)
            yield Stretch(scope, [one for one in syntax.own_expressions(scope) if position(one)[0] == spot.line])


def _end_of_call(scope: ast.AST, line: int) -> tuple[int, int]:
    """Where the last call of `state_dict()` ends that begins in a line; else where the line does."""
    calls = (one for one in syntax.own_expressions(scope) if isinstance(one, ast.Call) and one.lineno == line)
    ends = [(one.end_lineno or 0, one.end_col_offset or 0) for one in calls if "state_dict" in _names(one.func)]
    return max(ends, default=(line, 0))


def _after(scope: ast.AST, start: tuple[int, int], line: int) -> list[ast.AST]:
    own = list(syntax.own_expressions(scope))
    loops = [one for one in own if isinstance(one, syntax.LOOPS) and syntax.spans(one, line)]
    begin = min((loop.lineno for loop in loops), default=0)
    end = max((loop.end_lineno or 0 for loop in loops), default=-1)
    return [one for one in own if position(one) >= start or begin <= position(one)[0] <= end]
