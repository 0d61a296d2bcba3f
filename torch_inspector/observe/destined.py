"""Where the value of an expression ends up, as far as the text of its function or cell says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

ANYWHERE = "*"
"""It is returned, or handed to something that may keep it."""
_ADDS = ("append", "extend", "insert", "add_module", "register_module")
_HOPS = 4


@lru_cache(maxsize=64)
def destinations(tree: ast.Module, expression: ast.expr) -> frozenset[str]:
    """Last parts of the names that may be given it: `blocks` for `self.blocks = nn.ModuleList(parts)`."""
    statements = list(syntax.own_statements(syntax.scope_at(tree, expression.lineno)))
    return frozenset(_handed_on({one for s in statements if _holds(s, expression) for one in _given_by(s)}, statements))


@lru_cache(maxsize=64)
def onward(trees: tuple[ast.Module, ...], names: frozenset[str]) -> frozenset[str]:
    """The same names, and those that the statements of other cells give what they hold."""
    statements = [one for tree in trees for one in syntax.own_statements(tree)]
    return frozenset(_handed_on(set(names), statements))


def is_of_the_cell(tree: ast.Module, expression: ast.expr) -> bool:
    """True if no function is around it, so that other cells know its names."""
    return syntax.scope_at(tree, expression.lineno) is tree


def _handed_on(found: set[str], statements: list[ast.stmt]) -> set[str]:
    for _ in range(_HOPS):
        more = {one for s in statements if _reads(s) & found for one in _given_by(s)} - found
        if not more:
            break
        found |= more
    return found


def _holds(statement: ast.stmt, expression: ast.expr) -> bool:
    return any(node is expression for part in _expressions(statement) for node in syntax.walk(part))


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements in it."""
    return (child for child in syntax.children(statement) if isinstance(child, ast.expr))


def _reads(statement: ast.stmt) -> set[str]:
    nodes = [node for part in _expressions(statement) for node in syntax.walk(part)]
    loads = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    return {dotted(node).rpartition(".")[2] for node in loads} - {""}


def _given_by(statement: ast.stmt) -> Iterator[str]:
    """What a statement gives a value: its targets, or the list that it adds to."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        nodes = [node for target in targets for node in syntax.walk(target)]
        yield from (
            dotted(n).rpartition(".")[2] for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n)
        )
        return
    value = statement.value if isinstance(statement, (ast.Expr, ast.Return)) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ADDS:
        yield dotted(value.func.value).rpartition(".")[2]
    elif isinstance(value, ast.Call) and dotted(value.func) == "setattr" and value.args:
        yield dotted(value.args[0]).rpartition(".")[2]
    elif isinstance(statement, ast.Return) or isinstance(value, (ast.Yield, ast.YieldFrom)):
        yield ANYWHERE
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        yield ANYWHERE  # as `super().__init__(*layers)`
