"""Expressions that a scope comes to whatever is tested in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_CHOOSING = (ast.Try, getattr(ast, "TryStar", ast.Try), ast.ExceptHandler, ast.match_case)


def is_untested(scope: Scope, node: ast.AST) -> bool:
    """True if an expression is worked out, and so are the calls of the functions around it."""
    if not _is_come_to(scope.node, node):
        return False
    return scope.caller is None or (scope.call is not None and is_untested(scope.caller, scope.call))


def parents_of(scope: ast.AST, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """A node of a scope and what it stands in, then that and what that stands in, up to the scope itself."""
    parents = _parents_in(scope)
    while (parent := parents.get(id(node))) is not None:
        yield node, parent
        node = parent


def position(node: ast.AST) -> tuple[int, int]:
    """Where a node begins; (0, 0) for what has no place."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end_of(node: ast.stmt | ast.expr) -> tuple[int, int]:
    """Where it ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


@lru_cache(maxsize=64)
def _parents_in(scope: ast.AST) -> dict[int, ast.AST]:
    found: dict[int, ast.AST] = {}
    for node in (scope, *syntax.own_expressions(scope)):
        if node is scope or not isinstance(node, syntax.INNER):
            found.update((id(child), node) for child in syntax.children(node))
    return found


def _is_come_to(scope: ast.AST, node: ast.AST) -> bool:
    around = list(parents_of(scope, node))
    if not around or any(_is_chosen(child, parent) for child, parent in around):
        return False
    loops = {id(parent) for _, parent in around if isinstance(parent, syntax.LOOPS)}
    leaves = (
        one for one in syntax.own_expressions(scope) if isinstance(one, _LEAVES) and end_of(one) <= position(node)
    )
    return not any(isinstance(one, (ast.Return, ast.Raise)) or _loop_of(scope, one) in loops for one in leaves)


def _is_chosen(child: ast.AST, parent: ast.AST) -> bool:
    """True for a part of a branch, a loop or an expression that may be left out."""
    if isinstance(parent, (ast.If, ast.IfExp)):
        return child is not parent.test
    if isinstance(parent, ast.BoolOp):
        return child is not parent.values[0]
    if isinstance(parent, syntax.LOOPS):
        return any(child is one for one in parent.orelse)
    if isinstance(parent, syntax.COMPREHENSIONS):
        return any(one.ifs for one in parent.generators)
    return isinstance(parent, _CHOOSING) or (isinstance(parent, ast.Assert) and child is parent.msg)


def _loop_of(scope: ast.AST, node: ast.AST) -> int:
    return next((id(parent) for _, parent in parents_of(scope, node) if isinstance(parent, syntax.LOOPS)), 0)
