"""Under which tests the parts of a function stand, and which of them ask for the mode of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax

_BLOCKS = ("body", "orelse", "finalbody")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_MODE = "training"
_STORES = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)


class Part(NamedTuple):
    """A node of a function with the tests that decide whether it runs."""

    node: ast.AST
    tests: tuple[ast.expr, ...]


class Guarded:
    """The text of a function, read for what the mode decides in it.

    Args:
        function: Its definition.
    """

    def __init__(self, function: ast.AST) -> None:
        self.parts = list(_parts(function))
        self._told: dict[int, bool] = {}
        self._in_tests: dict[int, frozenset[str]] = {}
        self._moded = self._names_of_mode()

    def calls(self) -> Iterator[Part]:
        """Every call."""
        return (part for part in self.parts if isinstance(part.node, ast.Call))

    def asks(self, part: Part) -> bool:
        """True if the mode decides whether a part runs."""
        return any(map(self._is_told, part.tests))

    def tells(self, expression: ast.AST) -> bool:
        """True if a value depends on the mode: `rate` after `rate = self.p if self.training else 0`."""
        return _tells(expression, self._moded)

    def _is_told(self, test: ast.expr) -> bool:
        """The same of a test, which many parts have."""
        if id(test) not in self._told:
            self._told[id(test)] = self.tells(test)
        return self._told[id(test)]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that are used in either mode."""
        return _names(part for part in self.parts if not self.asks(part))

    @cached_property
    def untested_names(self) -> frozenset[str]:
        """Names that stand under no test at all."""
        return _names(part for part in self.parts if not part.tests)

    def _names_of_mode(self) -> frozenset[str]:
        if not any(_MODE in syntax.name_of(part.node) for part in self.parts):
            return frozenset()
        stores = [part for part in self.parts if isinstance(part.node, _STORES)]
        given = [(self._words(part), _stored_in(part.node)) for part in stores]
        found, before = frozenset(name for words, _ in given for name in words if _MODE in name), None
        while found != before:
            before = found
            found = found.union(*(names for words, names in given if words & found))
        return found

    def _words(self, part: Part) -> frozenset[str]:
        """Names in a statement and in its tests, each test read once."""
        for test in part.tests:
            if id(test) not in self._in_tests:
                self._in_tests[id(test)] = _names_in(test)
        return _names_in(part.node).union(*(self._in_tests[id(test)] for test in part.tests))


@lru_cache(maxsize=256)
def guarded(function: ast.AST) -> Guarded:
    """What is read of a function, remembered."""
    return Guarded(function)


def _names(parts: Iterable[Part]) -> frozenset[str]:
    return frozenset(syntax.name_of(part.node) for part in parts) - {""}


def _tells(node: ast.AST, moded: frozenset[str]) -> bool:
    return any(_MODE in name or name in moded for name in _names_in(node))


def _names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(syntax.name_of(one) for one in syntax.walk(node)) - {""}


def _stored_in(node: ast.AST) -> frozenset[str]:
    return frozenset(name for target in syntax.targets_of(node) for name in syntax.names_in(target))


def _parts(function: ast.AST) -> Iterator[Part]:
    stack: list[Part] = [Part(function, ())]
    while stack:
        part = stack.pop()
        yield part
        inner = (*part.tests, *_tests_of(part.node))
        above = _left_above(part.node) if hasattr(part.node, "body") else {}
        if above:
            stack.extend(Part(one, (*inner, *above.get(id(one), ()))) for one in syntax.children(part.node))
        else:
            stack.extend(Part(one, inner) for one in syntax.children(part.node))


def _tests_of(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [node.test]
    return node.values[:-1] if isinstance(node, ast.BoolOp) else []


def _left_above(node: ast.AST) -> dict[int, tuple[ast.expr, ...]]:
    """Tests under which the statements above one leave its block: `if not self.training: return x`."""
    found: dict[int, tuple[ast.expr, ...]] = {}
    for name in _BLOCKS:
        block, tests = getattr(node, name, None), tuple[ast.expr, ...]()
        for one in block if isinstance(block, list) else ():
            found[id(one)] = tests
            if isinstance(one, ast.If) and any(
                isinstance(each, _LEAVES) for each in (*one.body[-1:], *one.orelse[-1:])
            ):
                tests = (*tests, one.test)
    return found
