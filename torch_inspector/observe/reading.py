"""One cell that is done, as those who judge its text read it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from types import CodeType
from typing import Any, NamedTuple, cast

from torch_inspector.facts import ForwardFact, LoaderFact, Shape, syntax
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.rebinders import Rebinders, rebinders
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import definitions_in
from torch_inspector.observe.turned_in_place import Turners, turners

# Processor time for all of one cell; what is not reached is not said. A cell of 60 lines takes 8 ms, twice that if it
# is the first of a session, which is read with cold caches, or the machine is slow.
_BUDGET_S = 0.030
# What most cells call before they define anything.
_LIBRARIES = frozenset(["torch", "nn", "F", "np", "random", "print", "range", "len", "list", "dict"])


def _runs_own_code(node: ast.AST) -> bool:
    """True for a call that may be of a function of the user's."""
    return isinstance(node, ast.Call) and dotted(node.func).partition(".")[0] not in _LIBRARIES


class _Framed(NamedTuple):
    """As much of a frame as `Places.file_of` asks for."""

    f_code: CodeType


@dataclass
class Reading:
    """One cell that is done."""

    file: CodeFile
    places: Places
    names: Mapping[str, Any]
    before: Mapping[str, Shape]
    """Shapes that the user's tensors had when the cell began."""
    forwards: Callable[[], tuple[ForwardFact, ...]]
    loaders: Callable[[], tuple[LoaderFact, ...]] = tuple
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Tensors of small numbers when the cell began, by path: key, and how often they had been changed in place."""
    deadline: float = field(default_factory=lambda: thread_time() + _BUDGET_S)

    @cached_property
    def made(self) -> dict[tuple[int | None, int | None, str], Shape]:
        """Shapes of what modules gave back, by cell, line and name."""
        facts = self.forwards()
        return {(f.place.cell, f.place.line, f.name): f.output_shape for f in facts if f.output_shape and f.name}

    @cached_property
    def batches(self) -> dict[tuple[int | None, int | None], int]:
        """Batches of the longest whole or latest pass of a loader, by the cell and line that goes through it."""
        found: dict[tuple[int | None, int | None], int] = {}
        for one in self.loaders():
            place = (one.place.cell, one.place.line)
            found[place] = max(found.get(place, 0), one.batch_count // max(one.pass_count, 1))
        return found

    @cached_property
    def rebinders(self) -> Rebinders:
        """What functions of the session may do to the user's names without saying so where they are called."""
        return rebinders(self.file, self.places)

    @cached_property
    def turners(self) -> Turners:
        """Functions of the latest cells that change the shape of what they are given."""
        return turners([self.file, *self.places.latest()])

    @cached_property
    def versions(self) -> dict[int, int]:
        """How often tensors had been changed in place when the cell began, by key."""
        return dict(self.counted.values())

    def has_defined_anew(self, function: str) -> bool:
        """True if the cell defines a function that it may have called before as another one."""
        tree = self.file.tree
        lines = definitions_in(tree).get(function, ()) if tree is not None else ()
        if tree is None or len(lines) != 1:
            return len(lines) > 1
        above = [one for one in tree.body if one.lineno < lines[0] and isinstance(one, (ast.Assign, ast.Expr, ast.For))]
        ran = any(_runs_own_code(part) for one in above for part in syntax.walk(one))
        older = (one.tree for one in self.places.latest() if ran and one.code != self.file.code)
        return any(function in definitions_in(one) for one in older if one is not None)

    def file_of(self, code: CodeType) -> CodeFile | None:
        """The cell that a function comes from."""
        return self.places.file_of(cast("Any", _Framed(code)))

    def tree_of(self, code: CodeType) -> ast.Module | None:
        """The same, parsed."""
        file = self.file_of(code)
        return file.tree if file is not None else None
