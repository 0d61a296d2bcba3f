"""Grounds for taking what is there now for what a line read: what led to it is proven to be as it was, or is not."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.handed_to import is_handed_on
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.last_given import Given, last_given, shares_line
from torch_inspector.observe.seen import Spot
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_array, is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import given_around, given_in, loops_in, plain_stores, stores_in
from torch_inspector.observe.versions import stays_counted

# Values that nobody can change; only another can take the place.
_FIXED = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size, range)
# What is worked out of its parts alone.
_PURE = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Slice, ast.Tuple, ast.keyword)
_MAKES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)
_COUNTS = frozenset(["len", "int", "float", "range", "abs", "min", "max"])
_DEPTH = 40


class Read(NamedTuple):
    """An expression where a line of a scope read it; the line is where its statement begins."""

    scope: Scope
    source: ast.AST
    line: int
    is_handed_on: bool = False
    """True if somebody got it before the line, who may have written into it."""

    def value(self) -> Any:
        """What it stands for, as far as that is known."""
        names = self.scope.names
        with names.at(Spot(self.scope.node, self.line)):
            return names.value(self.source)  # type: ignore[arg-type]

    def part(self, source: ast.AST) -> Read:
        """A part of it."""
        return self._replace(source=source)


class Grounds:
    """What a line read, followed to the user's variables.

    Sure is what was read there through names that are given a value once, in memory of which torch counts every change
    and has counted none. An attribute or an entry may have been another, whatever the text says.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        """Of the line; what its callers read is looked at as they are now."""
        self.is_sure = True
        self.is_another = False
        """True if it certainly was another, or nobody knows which of several."""
        self.keys: set[object] = set()
        """Attributes and constant keys that it was read by; `UNKNOWN` stands for any."""
        self.names: set[str] = set()
        """Variables that a function may have given anew."""
        self.owners: list[Any] = []
        """Objects and containers that it was read of."""
        self.memory: list[Any] = []
        """Tensors and arrays that may have been written to."""
        self.lines: dict[int, int] = {}
        """The first line of each scope that read something, by identity of the scope."""
        self._depth = 0
        self._seen: dict[tuple[int, ...], Read] = {}

    def add(self, read: Read) -> Grounds:
        """Takes in one more expression."""
        key = (id(read.scope), id(read.source), read.line, read.is_handed_on)
        if self._seen.setdefault(key, read) is not read:
            return self
        self._note(read)
        self._depth += 1
        if self._depth > _DEPTH:
            self.is_sure = False
        else:
            self._follow(read)
        self._depth -= 1
        return self

    def _note(self, read: Read) -> None:
        self.lines[id(read.scope)] = min(read.line, self.lines.get(id(read.scope), read.line))

    def take(self, value: Any) -> None:
        """Takes in something that is there."""
        if not is_tensor(value) and not is_array(value):
            return
        reading = self._scope.reading
        before, rebinders = reading.versions.get(id(value), 0), reading.rebinders
        if type(value) is not torch.Tensor or rebinders.uncounted or not stays_counted(value, before):
            self.is_sure = False
            self.memory.append(value)

    def _follow(self, read: Read) -> None:
        source = read.source
        if isinstance(source, ast.Name):
            handed_on = read.is_handed_on or is_handed_on(read.scope.node, source.id, read.line)
            self._name(read._replace(is_handed_on=handed_on), source.id)
            return
        # Of memory that is gone, nobody has counted the changes.
        self.is_sure = self.is_sure and not (read.is_handed_on and isinstance(source, _MAKES))
        if isinstance(source, ast.Attribute):
            self._attribute(read, source)
        elif isinstance(source, ast.Subscript):
            self._entry(read, source)
        elif isinstance(source, ast.Call):
            self._call(read, source)
        elif not isinstance(source, ast.Constant):
            self.is_sure = self.is_sure and isinstance(source, _PURE)
            self._parts(read, *syntax.children(source))

    def _parts(self, read: Read, *parts: ast.AST) -> None:
        for one in parts:
            if isinstance(one, (ast.expr, ast.keyword)):
                self.add(read.part(one))

    def _attribute(self, read: Read, source: ast.Attribute) -> None:
        owner = read.part(source.value).value()
        if is_a(owner, ModuleType):
            return
        if not is_tensor(owner) and type(owner) is not Sized:
            self.open(owner, source.attr)
        self._parts(read, source.value)

    def _entry(self, read: Read, source: ast.Subscript) -> None:
        owner = read.part(source.value).value()
        if owner is not UNKNOWN and not _has_numbers(owner):
            self.open(owner, getattr(source.slice, "value", UNKNOWN))
        self._parts(read, source.value, source.slice)

    def _call(self, read: Read, source: ast.Call) -> None:
        func, given = source.func, (*source.args, *source.keywords)
        owner = read.part(func.value).value() if isinstance(func, ast.Attribute) else None
        if isinstance(func, ast.Attribute) and (owner is UNKNOWN or _has_numbers(owner)):
            self._parts(read, func.value, *given)
        elif is_a(owner, ModuleType) or dotted(func) in _COUNTS:
            self._parts(read, *given)
        else:
            self.is_sure = False
            self._parts(read, func, *given)

    def _name(self, read: Read, name: str) -> None:
        scope = read.scope
        if scope.caller is None:
            self._variable(read, name)
        elif _is_shared(scope.node, name):
            self.is_another = True
        elif name in stores_in(scope.node):
            self._stored(read, name)
        elif name in syntax.parameters_of(scope.node):
            self._parameter(read, name)
        elif name in scope.names.values:  # of a function around it
            self.is_sure = False
            self.names.add(name)
            self.take(scope.names.values[name])
        else:
            self._variable(_outermost(read), name)

    def _stored(self, read: Read, name: str) -> None:
        """A variable that its scope gives a value, by the last one before the line."""
        scope, lines = read.scope, stores_in(read.scope.node)[name]
        last = last_given(scope.node, name, read.line) or _only_given(scope.node, name, read.line)
        late = [one for one in lines if one >= read.line and one not in _heads(scope.node, name)]
        beside = shares_line(scope.node, read.line) and read.line in lines
        if beside or (late and scope is not self._scope):
            self.is_another = True
        elif last is not None:
            plain = (name, last.line) in plain_stores(scope.node) and not given_around(scope.node, name, read.line)
            self.is_sure = self.is_sure and plain
            if last.loop is None:
                self.add(Read(scope, last.value, last.line, read.is_handed_on))
            else:
                self._turned(read, name)
        elif min(lines) >= read.line and scope.caller is not None and name in syntax.parameters_of(scope.node):
            self.is_sure = self.is_sure and not given_around(scope.node, name, read.line)
            self._parameter(read, name)
        else:
            self._turned(read, name)

    def _turned(self, read: Read, name: str) -> None:
        """A variable of a loop, or one that is given different values in its turns."""
        self.is_sure = False
        for loop in loops_in(read.scope.node):
            if name in syntax.names_in(loop.target):
                self._sources(Read(read.scope, loop.iter, loop.lineno))

    def _sources(self, read: Read) -> None:
        """All that a loop may go through."""
        parts = list(syntax.walk(read.source))
        called = {id(one.func) for one in parts if isinstance(one, ast.Call)}
        for one in parts:
            if isinstance(one, ast.Name) and id(one) not in called:
                self.open(read.part(one).value())

    def _parameter(self, read: Read, name: str) -> None:
        """What the caller gave; a default is a number."""
        scope = read.scope
        call, caller = scope.call, scope.caller
        line = _line_of_call(scope)
        if caller is None or call is None or line is None:
            self.is_sure = False
            return
        around = _comprehension(caller, call)
        if around is not None:
            self.is_sure = False
            for one in around.generators:  # type: ignore[attr-defined]
                self._sources(Read(caller, one.iter, line))
        elif any(isinstance(one, ast.Starred) for one in call.args):
            self.is_sure = False
        elif name in scope.arguments:
            self.is_sure = self.is_sure and _is_given(scope, name, Read(caller, scope.arguments[name], line).value())
            self.add(Read(caller, scope.arguments[name], line, read.is_handed_on))
        elif not is_one_of(scope.names.name(name), _FIXED) or scope.reading.rebinders.any_name:
            self.is_sure = False
            self._parts(Read(caller, call.func, line), getattr(call.func, "value", call.func))

    def _variable(self, read: Read, name: str) -> None:
        """A variable of the notebook; what a function reads of it was read when it was called."""
        self._note(read)
        scope, line, reading = read.scope, read.line, read.scope.reading
        value, heads = reading.names.get(name, UNKNOWN), _heads(scope.node, name)
        lines = [one for one in stores_in(scope.node).get(name, ()) if one not in heads]
        if any(one >= line for one in lines):
            self._stored(read, name)
            return
        if not lines and not heads and name in reading.counted and reading.counted[name][0] != id(value):
            self.is_another = True
        if given_around(scope.node, name, line) or any(one >= line for one in heads):
            self._turned(read, name)
        if reading.rebinders.any_name or name in reading.rebinders.names:
            self.is_sure = False
            self.names.add(name)
        self.take(value)

    def open(self, owner: Any, key: object = UNKNOWN) -> None:
        """Takes in an entry of a container, or a field of an object, which may have been another."""
        self.is_sure = False
        self.keys.add(key if is_one_of(key, (str, int)) else UNKNOWN)
        (self.memory if _has_numbers(owner) else self.owners).append(owner)


def _has_numbers(value: Any) -> bool:
    return is_tensor(value) or is_array(value) or type(value) is Sized


def _is_shared(function: ast.AST, name: str) -> bool:
    """True if a function, or one inside it, gives the variable of somebody else another value."""
    nodes = (one for one in syntax.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal)))
    return any(name in one.names for one in nodes)


def _only_given(scope: ast.AST, name: str, line: int) -> Given | None:
    """What the one statement that gives a name a value gives it, wherever that stands."""
    lines, values = stores_in(scope)[name], given_in(scope).get(name, [])
    return Given(values[0], lines[0]) if len(lines) == len(values) == 1 and lines[0] < line else None


def _outermost(read: Read) -> Read:
    """The statement of the cell that led to a line."""
    scope, line = read.scope, read.line
    while scope.caller is not None:
        scope, line = scope.caller, _line_of_call(scope) or 0
    return Read(scope, read.source, line)


def _is_given(scope: Scope, name: str, value: Any) -> bool:
    """False if a parameter stood for something else than an argument: another one, or a default of now."""
    own = scope.names.first.get(name, scope.names.values.get(name, UNKNOWN))
    numbers = is_one_of(own, (int, float)) and is_one_of(value, (int, float))
    if numbers or is_tensor(own) or is_tensor(value) or is_array(own) or is_array(value):
        return own is value or (numbers and bool(own == value))
    return True


def _line_of_call(scope: Scope) -> int | None:
    """Where the statement begins that called a function, or the call in a lambda; None for what stands in no text."""
    if scope.caller is None or scope.call is None:
        return None
    statement = syntax.statement_of(scope.call, syntax.parents(scope.caller.node))
    return statement.lineno if statement is not None else getattr(scope.call, "lineno", None)


def _comprehension(caller: Scope, call: ast.Call) -> ast.AST | None:
    """The comprehension around a call."""
    parents, here = syntax.parents(caller.node), call
    while (parent := parents.get(id(here))) is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, syntax.COMPREHENSIONS):
            return parent
        here = parent  # type: ignore[assignment]
    return None


def _heads(scope: ast.AST, name: str) -> list[int]:
    """Lines where loops give a name its value."""
    return [one.lineno for one in loops_in(scope) if name in syntax.names_in(one.target)]
