"""Comparisons that a check expects to find no difference: whoever writes it knows that both sides are one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_EQUAL = frozenset(["equal", "allclose", "isclose", "eq", "array_equal", "array_equiv"])
# What is called where a check fails, besides `raise`.
_COMPLAINS = frozenset(["warn", "warning", "error", "critical", "exception", "exit", "fail", "skip"])
# What is given weights to train them, by its last name.
_TRAINS = re.compile(
    r"optim|param_group|clip_grad|^(Decoupled|Fused|Distributed)?(SGD|[A-Z]?\w*Adam\w*|R(MS)?prop|Ada\w+|ASGD|LBFGS|Muon"
    r"|Lion|LAMB|Lamb|Shampoo|SOAP)$"
)


def is_meant(pair: ast.expr, tree: ast.AST) -> bool:
    """True if an `assert`, or a test before a `raise`, holds while the two sides are the same, or may do so."""
    given = _given(tree)
    return any(_means(test, pair, given) is not holds for test, holds in _checks(tree) if _contains(test, pair, given))


def is_trained_with(name: str, trees: list[ast.Module]) -> bool:
    """True if an optimizer, or what clips gradients, is given a variable: it is there to train, not to be kept."""
    calls = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.Call))
    given = (one for one in calls if _TRAINS.search(dotted(one.func).rpartition(".")[2]))
    values = (one for call in given for one in (*call.args, *(k.value for k in call.keywords)))
    return any(syntax.name_of(part) == name for one in values for part in syntax.walk(one))


@lru_cache(maxsize=64)
def _given(tree: ast.AST) -> dict[str, ast.expr]:
    """Variables with the one expression that the cell gives them."""
    found: dict[str, list[ast.expr]] = {}
    for node in syntax.own_expressions(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


@lru_cache(maxsize=64)
def _checks(tree: ast.AST) -> tuple[tuple[ast.expr, bool], ...]:
    """Tests of a cell that complain, each with what it means of both sides where equal sides are the mistake."""
    return tuple(_complaints(tree))


def _complaints(tree: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    for node in syntax.own_expressions(tree):
        if isinstance(node, ast.Assert):
            yield node.test, False
        elif isinstance(node, ast.If):
            yield from ((node.test, True) for one in node.body if _complains(one))
            yield from ((node.test, False) for one in node.orelse if _complains(one))


def _complains(statement: ast.stmt) -> bool:
    """True for a `raise`, and for a call that warns or ends."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    named = getattr(call.func, "attr", "") or getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
    return isinstance(statement, ast.Raise) or named in _COMPLAINS


def _contains(node: ast.AST, pair: ast.expr, given: dict[str, ast.expr]) -> bool:
    inside = list(syntax.walk(node))
    named = (given[one.id] for one in inside if isinstance(one, ast.Name) and one.id in given)
    return any(one is pair for one in inside) or any(one is pair for value in named for one in syntax.walk(value))


def _means(node: ast.AST, pair: ast.expr, given: dict[str, ast.expr]) -> bool | None:
    """What it says of both sides if an expression holds: the same, or not; None for what is not known."""
    if node is pair:
        return _of_pair(pair)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _means(node.operand, pair, given)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _of_number(node, pair, given)
    if isinstance(node, ast.Name) and node.id in given:
        return _means(given[node.id], pair, {})
    inside = [one for one in syntax.children(node) if _contains(one, pair, given)]
    return _means(inside[0], pair, given) if len(inside) == 1 else None


def _of_pair(pair: ast.expr) -> bool | None:
    """What the comparison says by itself; None for a difference, which is a number."""
    if isinstance(pair, ast.Compare):
        return isinstance(pair.ops[0], ast.Eq)
    name = pair.func.attr if isinstance(pair, ast.Call) and isinstance(pair.func, ast.Attribute) else ""
    return True if name in _EQUAL else False if name == "ne" else None


def _of_number(node: ast.Compare, pair: ast.expr, given: dict[str, ast.expr]) -> bool | None:
    """What a number, of a difference or of what differs, says when it is compared with another."""
    left = _contains(node.left, pair, given)
    side, other, op = (
        (node.left if left else node.comparators[0]),
        node.comparators[0] if left else node.left,
        node.ops[0],
    )
    larger = isinstance(op, (ast.Gt, ast.GtE) if left else (ast.Lt, ast.LtE))
    inner = _means(side, pair, given)
    if inner is None:
        return not (larger or isinstance(op, ast.NotEq))
    if isinstance(other, ast.Constant) and not other.value and isinstance(op, ast.Eq):
        return not inner
    return inner if larger or isinstance(op, (ast.Eq, ast.NotEq)) else not inner
