"""Learning rates that the text of cells sets in the groups of an optimizer, without a schedule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


def sets_rate(run: Run) -> bool:
    """True if a cell sets a rate: `group["lr"] *= 0.9`, `group.update(lr=rate)`, `group |= {"lr": rate}`."""
    return any(_sets(one) for tree in _trees(run) for one in syntax.walk(tree))


def rates_set(run: Run) -> set[str]:
    """What the cells give a rate outside of functions, as written: `rate` of `group["lr"] = rate`."""
    own = (one for tree in _trees(run) for one in syntax.own_expressions(tree) if isinstance(one, ast.Assign))
    return {ast.unparse(one.value) for one in own if any(map(_is_rate, one.targets))}


def _trees(run: Run) -> Iterator[ast.Module]:
    trees = (syntax.parse(one.cell.source) for one in (run, *run.earlier))
    return (tree for tree in trees if tree is not None)


def _is_rate(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and _is_word(target.slice)


def _is_word(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "lr"


def _sets(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
        return _has_rate(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and _is_rate(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "update":
        return False
    return any(one.arg == "lr" for one in node.keywords) or any(map(_has_rate, node.args))


def _has_rate(given: ast.AST) -> bool:
    """True for `{"lr": rate}` and `dict(lr=rate)`."""
    keys = given.keys if isinstance(given, ast.Dict) else ()
    named = given.keywords if isinstance(given, ast.Call) else ()
    return any(map(_is_word, keys)) or any(one.arg == "lr" for one in named)
