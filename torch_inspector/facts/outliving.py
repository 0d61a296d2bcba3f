"""Totals that a function adds to and that go on from call to call."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax


def outlives(scope: ast.AST, loop: ast.For, line: int) -> bool:
    """True if a line of a loop adds to what the function around has from outside, and gives no beginning.

    Args:
        scope: The function, or the whole cell, whose variables are all its own.
        loop: In that function.
        line: In that loop.
    """
    if isinstance(scope, ast.Module):
        return False
    own = list(syntax.own_statements(scope))
    targets = [target for one in own if one.lineno == line for target in _targets(one)]
    outside = {name for one in own if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    kept = {ast.unparse(one) for one in targets if not isinstance(one, ast.Name) or one.id in outside}
    begun = (one for one in own if isinstance(one, ast.Assign) and one.lineno < loop.lineno)
    return bool(kept) and kept.isdisjoint(ast.unparse(target) for one in begun for target in one.targets)


def terms_in(loop: ast.For, line: int) -> int:
    """Terms that one turn of a loop adds to what a line of it adds to: 2 for `total = total + a + b`; at least 1."""
    own = list(syntax.own_statements(loop))
    wanted = {ast.unparse(target) for one in own if one.lineno == line for target in _targets(one)}
    adding = [one for one in own if wanted & {ast.unparse(target) for target in _targets(one)}]
    signs = sum(isinstance(part, ast.Add) for one in adding for part in syntax.walk(one))
    return max(signs, 1)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.AugAssign):
        return [statement.target]
    return statement.targets if isinstance(statement, ast.Assign) else []
