"""Names as they were at one statement of a cell that is done."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_inspector.facts import Shape
from torch_inspector.observe.given_back import given_back
from torch_inspector.observe.operands import Names
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.shapes import UNKNOWN, Sized, Unknown, shape_of, together
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import (
    given_around,
    given_in,
    is_defined_below,
    late_at,
    loop_stores,
    plain_stores,
    stores_in,
)
from torch_inspector.observe.turned_in_place import turned_in

if TYPE_CHECKING:
    from torch_inspector.observe.reading import Reading


class Spot(NamedTuple):
    """A statement in its scope."""

    scope: ast.AST
    line: int


@dataclass
class SeenNames(Names):
    """Names at one expression: those that were given another value since then are not known, results of modules are."""

    reading: Reading | None = None
    file: CodeFile | None = None
    late: frozenset[str] = frozenset()
    before: Mapping[str, Shape] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    """Variables of a function, which are gone when it is done."""
    looped: Mapping[str, Any] = field(default_factory=dict)
    """Variables of loops over loaders that are known: their first length is not, and stands as -1."""
    spot: Spot | None = None
    rows: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the comprehensions around the call that is read, which hide all others of that name."""
    turn: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the loop around that call, in one of its turns, as far as they are still there."""

    def name(self, name: str) -> Any:
        """What a variable stood for."""
        if self.spot is not None and name in turned_in(self.spot.scope, self.reading.turners if self.reading else {}):
            return UNKNOWN
        if name in self.turn:
            return self.turn[name]
        if name in self.rows:
            return self.rows[name]
        if name in self.late:
            return Sized(self.before[name]) if name in self.before else self._earlier(name)
        if name in self.first or (name in self.own and name not in self.values and name not in self.given):
            return self._turning(name) if name in self.looped else self._earlier(name)
        value = self._as_given(name) if name in self.given else super().name(name)
        return self.looped.get(name, UNKNOWN) if type(value) is Unknown else value

    def _turning(self, name: str) -> Any:
        """A variable of a loop, or what the statements of a turn have made of it before this one."""
        one, spot = self.looped[name], self.spot
        lines = [line for line in stores_in(spot.scope).get(name, ()) if line < spot.line] if spot is not None else []
        if spot is None or not lines:
            return one
        given = [value for value in given_in(spot.scope).get(name, ()) if value.lineno == max(lines)]
        if not given:  # the head of the loop
            return one
        self.spot = spot._replace(line=max(lines))
        try:
            value = self.value(given[0]) if len(given) == 1 else UNKNOWN
        finally:
            self.spot = spot
        sure = (name, max(lines)) in loop_stores(spot.scope)
        return value if sure or shape_of(value) == shape_of(one) else UNKNOWN

    def _as_given(self, name: str) -> Any:
        """A variable of a function by its one statement, where others may not have had their later values yet."""
        lines = stores_in(self.spot.scope).get(name, ()) if self.spot is not None else ()
        if self.spot is None or len(lines) != 1 or name in self.values or lines[0] >= self.spot.line:
            return super().name(name)
        kept, self.spot = self.spot, self.spot._replace(line=lines[0])
        try:
            return super().name(name)
        finally:
            self.spot = kept

    def value(self, expression: ast.expr) -> Any:
        """A live object, a `Sized`, or `UNKNOWN`."""
        if type(expression) is ast.Compare and len(expression.ops) == 1:
            one, two = (shape_of(self.value(side)) for side in (expression.left, expression.comparators[0]))
            return together(one, two) if one is not None and two is not None else UNKNOWN
        value = super().value(expression)
        if type(value) is Unknown and type(expression) is ast.Call and self.reading is not None:
            made = self._made(expression)
            other = type(made) is not Unknown or self._is_another(expression)
            return made if other else given_back(expression, self, self.reading.tree_of, _local)
        return value

    def _is_another(self, call: ast.Call) -> bool:
        """True if a function may have been another one when it was called."""
        if not isinstance(call.func, ast.Name) or self.reading is None or self.spot is None:
            return False
        below = isinstance(self.spot.scope, ast.Module) and is_defined_below(self.spot.scope, call)
        return below or (not isinstance(self.spot.scope, ast.Module) and self.reading.has_defined_anew(call.func.id))

    def given_before(self, name: str) -> ast.expr | None:
        """What the last statement before this one gave a name with several values, if names in it have one each."""
        if self.spot is None or given_around(self.spot.scope, name, self.spot.line):
            return None
        stores = stores_in(self.spot.scope)
        lines = [line for line in stores.get(name, ()) if line < self.spot.line]
        given = plain_stores(self.spot.scope).get((name, max(lines))) if lines else None
        if given is None or len(stores[name]) == 1:
            return None
        inside = (one.id for one in ast.walk(given.value) if isinstance(one, ast.Name))
        return given.value if all(len(stores.get(one, ())) <= 1 for one in inside) else None

    def _earlier(self, name: str) -> Any:
        """What the last statement before this one gave a name that is given several values, if that one surely ran."""
        if self.spot is None or given_around(self.spot.scope, name, self.spot.line):
            return UNKNOWN
        lines = [line for line in stores_in(self.spot.scope).get(name, ()) if line < self.spot.line]
        given = plain_stores(self.spot.scope).get((name, max(lines))) if lines else None
        if given is None:
            return UNKNOWN if lines else self.first.get(name, UNKNOWN)
        with self.at(Spot(self.spot.scope, given.lineno)):
            return self.value(given.value)

    @contextmanager
    def at(self, spot: Spot) -> Iterator[None]:
        """Names are read as they were at another statement of the same scope."""
        kept = self.spot, self.late, self.before
        self.spot = spot
        self.late, self.before = (self.late, {}) if self.own else (late_at(spot.scope, spot.line), {})
        try:
            yield
        finally:
            self.spot, self.late, self.before = kept

    def _made(self, call: ast.Call) -> Any:
        if self.reading is None or self.file is None:
            return UNKNOWN
        shape = self.reading.made.get((self.file.cell, call.lineno + self.file.offset, dotted(call.func)))
        return Sized(shape) if shape else UNKNOWN


def _local(function: ast.AST, names: Names, line: int) -> Names:
    """The names of a function that is called inside an expression, at a line; what it calls itself is not followed."""
    seen = SeenNames(names.values, names.outer, names.given, first=names.first)
    seen.own, seen.spot = frozenset(stores_in(function)), Spot(function, line)
    return seen
