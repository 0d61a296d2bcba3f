"""Roots and powers in a text that make no NaN: of squares, norms and amounts, which are never below zero."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping

from torch_inspector.facts import syntax

Given = Mapping[str, ast.expr]
"""What names stand for, where they are given one value."""
_AMOUNTS = frozenset(["norm", "vector_norm", "abs", "square", "sqrt", "var", "std"])
# Of numbers that are not below zero they make none that are.
_KEEP = frozenset(
    ["sum", "mean", "amax", "unsqueeze", "expand", "expand_as", "view", "reshape", "flatten", "squeeze", "contiguous",
     "maximum"]
)  # fmt: skip
_SPACES = frozenset(["torch", "torch.linalg"])
_DEPTH = 12


def given_once(tree: ast.AST) -> dict[str, ast.expr]:
    """Names that a tree gives one value, and whose methods do not change it."""
    nodes = list(syntax.walk(tree))
    stored = [one.arg for one in nodes if isinstance(one, ast.arg)]
    stored += [one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)]
    owners = [one.value for one in nodes if isinstance(one, ast.Attribute) and one.attr.endswith("_")]
    owners += [one.value for one in nodes if isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load)]
    changed = {one.id for one in owners if isinstance(one, ast.Name)}
    assigned = [one for one in nodes if isinstance(one, ast.Assign) and len(one.targets) == 1]
    found = {one.targets[0].id: one.value for one in assigned if isinstance(one.targets[0], ast.Name)}
    times = Counter(stored)
    return {name: value for name, value in found.items() if times[name] == 1 and name not in changed}


def are_real(nodes: Iterable[ast.AST], given: Given) -> bool:
    """True if every power is even, and every root is of what is never below zero."""
    return all(_is_real(one, given) for one in nodes)


def _is_real(node: ast.AST, given: Given) -> bool:
    name, base, power = _power(node)
    if name == "sqrt":
        return base is not None and _is_amount(base, given)
    if name != "pow":
        return True
    return _is_even(power) or (base is not None and _number(power) == 0.5 and _is_amount(base, given))  # noqa: PLR2004


def _is_amount(node: ast.expr, given: Given, depth: int = 0) -> bool:
    """True for what is never below zero: `x.pow(2).sum(-1)`, `x * x`, `x.norm()`, `x ** 2 + 1e-8`."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Name):
        return node.id in given and _is_amount(given[node.id], given, depth + 1)
    name, base, power = _power(node)
    if isinstance(node, ast.Constant):
        return _number(node) >= 0
    if name == "pow":
        return _is_even(power) or (base is not None and _is_amount(base, given, depth + 1))
    if isinstance(node, ast.BinOp):
        same = isinstance(node.op, ast.Mult) and ast.unparse(node.left) == ast.unparse(node.right)
        sides = all(_is_amount(side, given, depth + 1) for side in (node.left, node.right))
        return same or (isinstance(node.op, (ast.Add, ast.Mult, ast.Div)) and sides)
    return name in _AMOUNTS or (name in _KEEP and base is not None and _is_amount(base, given, depth + 1))


def _power(node: ast.AST) -> tuple[str, ast.expr | None, ast.expr | None]:
    """The name of a call, what it is made of, and its first argument; `x ** 2` is `x.pow(2)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return "pow", node.left, node.right
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "", None, None
    parts = list(node.args) if ast.unparse(node.func.value) in _SPACES else [node.func.value, *node.args]
    return node.func.attr, parts[0] if parts else None, parts[1] if len(parts) > 1 else None


def _is_even(power: ast.expr | None) -> bool:
    number = _number(power)
    return number > 0 and number % 2 == 0


def _number(node: ast.expr | None) -> float:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) else -1.0
