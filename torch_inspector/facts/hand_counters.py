"""Counters that a loop counts up by hand, compares with a number, and sets back to zero."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax

# What makes up a step, of the calls under the test.
_STEPS = ("step", "update", "unscale_", "clip_grad_norm_", "clip_grad_value_", "zero_grad")


class HandCounter(NamedTuple):
    """`n` of `n += 1` and `if n >= every:`, under which stands `n = 0`."""

    name: str
    limit: str
    """What it is compared with, as the text has it: `args.every`."""
    step: str = ""
    """The calls under that test that make up a step: `opt.step(); opt.zero_grad()`; empty if there is none."""
    begins_anew: bool = False
    """True if the same function, or the same cell, sets it to zero above the test as well."""
    line: int = 0
    end_line: int = 0
    """Lines of the test and of what stands under it."""


class _Settings(NamedTuple):
    """Where a scope counts up, and sets to zero, what it calls by a name."""

    counted: dict[str, list[ast.AugAssign]]
    zeroed: dict[str, list[int]]
    """By line."""


def hand_counter(test: ast.If, scope: ast.AST) -> HandCounter | None:
    """The counter that a test compares; None unless the text counts it up by one and the branch sets it back.

    Args:
        test: The test.
        scope: The function or cell around it.
    """
    compared = test.test
    if not isinstance(compared, ast.Compare) or len(compared.ops) != 1:
        return None
    if not isinstance(compared.ops[0], (ast.GtE, ast.Eq)) or not isinstance(compared.left, (ast.Name, ast.Attribute)):
        return None
    name, inside = ast.unparse(compared.left), [inner for one in test.body for inner in syntax.walk(one)]
    if not any(name in _zeroed(one) for one in inside):
        return None
    settings = _settings(scope)
    up = [one for one in settings.counted.get(name, ()) if isinstance(one.op, ast.Add)]
    whole = len(up) == 1 and isinstance(up[0].value, ast.Constant) and up[0].value.value == 1 and up[0] not in inside
    anew = any(line < test.lineno for line in settings.zeroed.get(name, ()))
    limit, end = ast.unparse(compared.comparators[0]), test.end_lineno or test.lineno
    return HandCounter(name, limit, _step(inside), anew, test.lineno, end) if whole else None


def _step(inside: list[ast.AST]) -> str:
    calls = [one.value for one in inside if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    texts = [ast.unparse(one) for one in calls if ast.unparse(one.func).endswith(_STEPS)]
    return "; ".join(texts) if any("step" in one for one in texts) else ""


@lru_cache(maxsize=64)
def _settings(scope: ast.AST) -> _Settings:
    """Those of a scope, gathered once for all of its tests."""
    found = _Settings({}, {})
    for one in syntax.own_expressions(scope):
        if isinstance(one, ast.AugAssign):
            found.counted.setdefault(ast.unparse(one.target), []).append(one)
        for name in _zeroed(one):
            found.zeroed.setdefault(name, []).append(one.lineno)  # type: ignore[attr-defined]
    return found


def _zeroed(node: ast.AST) -> list[str]:
    """What an assignment sets to zero, also of several at once: `n, total = 0, 0.0`."""
    if not isinstance(node, ast.Assign):
        return []
    pairs = [(one, node.value) for one in node.targets]
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    return [ast.unparse(one) for one, given in pairs if _is_zero(given)]


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def hand_counters(tree: ast.AST) -> list[HandCounter]:
    """All counters of a text, of its functions too."""
    scopes = [tree, *(one for one in syntax.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    tests = ((one, scope) for scope in scopes for one in syntax.own_expressions(scope) if isinstance(one, ast.If))
    return [found for test, scope in tests if (found := hand_counter(test, scope)) is not None]
