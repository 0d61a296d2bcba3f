"""Counters that a loop counts up by hand, compares with a number, and sets back to zero."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax


class HandCounter(NamedTuple):
    """`n` of `n += 1` and `if n >= every:`, under which stands `n = 0`."""

    name: str
    limit: str
    """What it is compared with, as the text has it: `args.every`."""
    steps: bool = False
    """True if a step of something stands under that test."""


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
    reset = any(isinstance(one, ast.Assign) and _is_set(one, name) for one in inside)
    counted = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.AugAssign)]
    up = [one for one in counted if ast.unparse(one.target) == name and isinstance(one.op, ast.Add)]
    whole = len(up) == 1 and isinstance(up[0].value, ast.Constant) and up[0].value.value == 1 and up[0] not in inside
    steps = any(isinstance(one, ast.Call) and ast.unparse(one.func).endswith("step") for one in inside)
    return HandCounter(name, ast.unparse(compared.comparators[0]), steps) if reset and whole else None


def _is_set(node: ast.Assign, name: str) -> bool:
    zero = isinstance(node.value, ast.Constant) and node.value.value == 0 and type(node.value.value) is int
    return zero and any(ast.unparse(one) == name for one in node.targets)


def hand_counters(tree: ast.AST) -> list[HandCounter]:
    """All counters of a text, of its functions too."""
    scopes = [tree, *(one for one in syntax.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    tests = ((one, scope) for scope in scopes for one in syntax.own_expressions(scope) if isinstance(one, ast.If))
    return [found for test, scope in tests if (found := hand_counter(test, scope)) is not None]
