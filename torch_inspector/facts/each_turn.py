"""Names that each turn of a loop, or each call of a function, surely gives a new value before it comes to a line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax

# What has names of its own, or may not run.
_APART = (*syntax.INNER, *syntax.COMPREHENSIONS)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def is_given_each_time(tree: ast.AST, line: int, name: str) -> bool:
    """True for a name that the innermost loop or function around a line surely gives a value before the line.

    At the top of a cell true as well, unless it is a name of a comprehension or lambda there.
    """
    if _is_inner(tree, line, name):
        return False
    scope = syntax.scope_at(tree, line)
    loops = [one for one in syntax.own_statements(scope) if isinstance(one, syntax.LOOPS) and _holds(one.body, line)]
    around = max(loops, key=lambda one: one.lineno, default=scope)
    if around is tree:
        return True
    return _is_in_head(around, name) or _is_given(getattr(around, "body", ()), line, name)


def loops_that_keep(tree: ast.AST, line: int, name: str) -> Iterator[ast.stmt]:
    """The loops around a line in its scope, innermost first, up to one that may give a name another value.

    What `x += 1` gives a name is taken for the same tensor, changed in place.
    """
    own = syntax.own_statements(syntax.scope_at(tree, line))
    loops = [one for one in own if isinstance(one, syntax.LOOPS) and _holds(one.body, line)]
    for loop in sorted(loops, key=lambda one: one.lineno, reverse=True):
        changed = [id(one.target) for one in _own_nodes(loop) if isinstance(one, ast.AugAssign)]
        if any(_is_store(one, name) and id(one) not in changed for one in _own_nodes(loop)):
            return
        yield loop


def is_of_scope(tree: ast.AST, line: int, name: str) -> bool:
    """True at the top of a cell, and for names that the function around a line has as arguments, or gives a value."""
    scope = syntax.scope_at(tree, line)
    own = scope is tree or _is_in_head(scope, name) or any(_stores(one, name) for one in getattr(scope, "body", ()))
    return own and not _is_inner(tree, line, name)


def is_at_top(tree: ast.AST, line: int) -> bool:
    """True for a line outside of loops and functions, which runs once."""
    scope = syntax.scope_at(tree, line)
    own = syntax.own_statements(scope)
    return scope is tree and not any(isinstance(one, syntax.LOOPS) and _holds(one.body, line) for one in own)


def _holds(body: list[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or line)


def _is_inner(tree: ast.AST, line: int, name: str) -> bool:
    """True if a comprehension or lambda at a line has the name for itself."""
    kinds = (ast.Lambda, *syntax.COMPREHENSIONS)
    found = [one for one in syntax.walk(tree) if isinstance(one, kinds)]
    here = [one for one in found if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return any(name in _own_names(one) for one in here)


def _own_names(node: ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> set[str]:
    if isinstance(node, ast.Lambda):
        return {one.arg for one in syntax.walk(node.args) if isinstance(one, ast.arg)}
    targets = [one for generator in node.generators for one in syntax.walk(generator.target)]
    return {one.id for one in targets if isinstance(one, ast.Name)}


def _is_in_head(around: ast.AST, name: str) -> bool:
    """True for an argument of a function, the variable of a loop, and what the test of a loop assigns."""
    if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any(isinstance(one, ast.arg) and one.arg == name for one in syntax.walk(around.args))
    if isinstance(around, (ast.For, ast.AsyncFor)):
        return _stores(around.target, name)
    return isinstance(around, ast.While) and _stores(around.test, name)


def _is_given(body: Iterable[ast.stmt], line: int, name: str) -> bool:
    """True if one of the statements before a line gives the name a value, whichever way is taken."""
    return any(_gives(one, line, name) for one in body if one.lineno <= line)


def _gives(node: ast.stmt, line: int, name: str) -> bool:
    if isinstance(node, ast.If):
        return _stores(node.test, name) or _by_ways(node, line, name)
    if isinstance(node, ast.Try):
        return _by_trying(node, line, name)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        heads = (one.optional_vars for one in node.items if one.optional_vars is not None)
        return any(_stores(one, name) for one in heads) or _is_given(node.body, line, name)
    before = (node.end_lineno or node.lineno) < line
    simple = not isinstance(node, (*syntax.LOOPS, *syntax.INNER, ast.Match))
    return before and simple and not _is_of_old(node, name) and _stores(node, name)


def _by_ways(node: ast.If, line: int, name: str) -> bool:
    """True if the branch with the line gives it; of a test before the line, both branches or the one that goes on."""
    for branch in (node.body, node.orelse):
        if _holds(branch, line):
            return _is_given(branch, line, name)
    return all(_ends(branch) or _is_given(branch, line, name) for branch in (node.body, node.orelse))


def _by_trying(node: ast.Try, line: int, name: str) -> bool:
    parts = [node.body, *(one.body for one in node.handlers), node.orelse, node.finalbody]
    inside = next((part for part in parts if _holds(part, line)), None)
    if inside is not None:
        return _is_given(inside, line, name) or (inside is node.orelse and _is_given(node.body, line, name))
    tried = _is_given([*node.body, *node.orelse], line, name)
    caught = all(_ends(one.body) or _is_given(one.body, line, name) for one in node.handlers)
    return (tried and caught) or _is_given(node.finalbody, line, name)


def _ends(branch: list[ast.stmt]) -> bool:
    """True for statements that do not come to what stands behind them."""
    return bool(branch) and isinstance(branch[-1], _LEAVES)


def _is_of_old(node: ast.stmt, name: str) -> bool:
    """True for a statement that makes a value of the old one: `y = y * 2`, `y += 1`."""
    if isinstance(node, ast.AugAssign):
        return True
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    return value is not None and any(isinstance(one, ast.Name) and one.id == name for one in syntax.walk(value))


def _stores(node: ast.AST, name: str) -> bool:
    return any(_is_store(one, name) for one in _own_nodes(node))


def _is_store(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what it is made of, without what has names of its own."""
    yield node
    for one in syntax.children(node):
        if not isinstance(one, _APART):
            yield from _own_nodes(one)
