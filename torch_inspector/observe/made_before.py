"""The call that made what an expression is given, where the text lets nothing come between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.bindings import bindings, is_bound_by, is_elsewhere, is_plain, parameters_of
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.only_read import is_only_read
from torch_inspector.observe.untested import end_of, parents_of, position

_BLOCKS = ("body", "orelse", "finalbody")
_START = (0, 0)


class Made(NamedTuple):
    """A call, and where its result was given a name."""

    call: ast.Call
    after: tuple[ast.stmt, ...] = ()
    """What has run since then, in this cell."""
    earlier: tuple[ast.AST, ...] = ()
    """Cells that ran since then, and the rest of the one that has the call."""
    is_earlier: bool = False

    def is_still(self, scope: Scope, expression: ast.expr, before: ast.AST) -> bool:
        """True if the names of an expression mean the same now as at the call."""
        if not self.after and not self.earlier:
            return True
        names = {one.id for one in syntax.walk(expression) if isinstance(one, ast.Name)}
        names -= set(parameters_of(scope.node)) - {n for n in names if bindings(scope.node, n)}
        return not any(self._binds(scope, name, before) for name in names)

    def _binds(self, scope: Scope, name: str, before: ast.AST) -> bool:
        if is_elsewhere(scope, name) or any(bindings(tree, name) for tree in self.earlier):
            return True
        since = position(self.call)
        found = [one for statement in self.after for one in _bound_in(statement, name)]
        # A statement around the one that reads has run as far as that one, a loop whole.
        return any(since < position(one) < position(before) or _is_in_loop(self.after, one) for one in found)


def made_before(scope: Scope, given: ast.expr, by: ast.AST) -> Made | None:
    """The call that an expression is, or that the last statement gave a variable, in this cell or in an earlier one.

    Args:
        scope: Where the expression stands.
        given: The expression.
        by: The call that is given it, or the expression itself.
    """
    if isinstance(given, ast.Call):
        return Made(given)
    if not isinstance(given, ast.Name) or is_elsewhere(scope, given.id):
        return None
    if bindings(scope.node, given.id):
        found = _in_block(scope, given.id, by)
    else:
        found = None if scope.function else _earlier(scope, given.id)
    since = _START if found is None or found.is_earlier else end_of(found.call)
    return found if found is not None and is_only_read(scope, given.id, by, since) else None


def _in_block(scope: Scope, name: str, by: ast.AST) -> Made | None:
    """What the last statement that surely ran before gave the variable."""
    after: list[ast.stmt] = []
    for block, statement in _blocks_around(scope.node, by):
        after.append(statement)
        if isinstance(statement, syntax.LOOPS) and is_bound_by(statement, name):
            return None
        here = next(i for i, one in enumerate(block) if one is statement)
        for one in reversed(block[:here]):
            if is_bound_by(one, name):
                value = one.value if isinstance(one, ast.Assign) and is_plain(one, name) else None
                return Made(value, tuple(after)) if isinstance(value, ast.Call) else None
            after.append(one)
    return None


def _blocks_around(scope: ast.AST, node: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """The blocks around a node, innermost first, each with the statement in it that holds the node."""
    for child, parent in parents_of(scope, node):
        blocks = [getattr(parent, field, None) for field in _BLOCKS] if isinstance(child, ast.stmt) else []
        for block in blocks:
            if isinstance(child, ast.stmt) and isinstance(block, list) and any(one is child for one in block):
                yield block, child


def _earlier(scope: Scope, name: str) -> Made | None:
    """What an earlier cell gave a variable, the only time, in a statement that no test decides about."""
    since: list[ast.AST] = [scope.node]
    for file in scope.reading.places.latest():
        tree = file.tree
        if tree is None or tree is scope.node:
            continue
        found = bindings(tree, name)
        if found:
            statements = [parent for _, parent in parents_of(tree, found[0])]
            plain = len(found) == 1 and _is_straight(statements) and is_plain(statements[0], name)
            value = statements[0].value if plain and isinstance(statements[0], ast.Assign) else None
            if not isinstance(value, ast.Call):
                return None
            block = next((one for one in _blocks_around(tree, value)), ([], None))[0]
            at = next((i for i, one in enumerate(block) if one is statements[0]), 0)
            return Made(value, (), (*since, *block[at + 1 :]), is_earlier=True)
        since.append(tree)
    return None


def _is_straight(around: list[ast.AST]) -> bool:
    """True for a statement of the cell itself, or in a `with` of it."""
    return all(isinstance(one, (ast.Assign, ast.With, ast.Module)) for one in around)


def _bound_in(statement: ast.stmt, name: str) -> list[ast.AST]:
    return bindings(statement, name) if not isinstance(statement, syntax.INNER) else []


def _is_in_loop(after: tuple[ast.stmt, ...], node: ast.AST) -> bool:
    return any(
        isinstance(one, syntax.LOOPS) and any(part is node for part in syntax.own_expressions(one)) for one in after
    )
