"""Where a text mentions each of its names: gone through once, however many names are asked about afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from torch_inspector.facts import syntax

Mentions = Mapping[str, list[ast.AST]]


@lru_cache(maxsize=64)
def reads_in(tree: ast.AST) -> Mentions:
    """Places that read each variable or field, by its last name."""
    return _by_name((own, one) for one in syntax.walk(tree) if (own := _read(one)))


@lru_cache(maxsize=64)
def meanings_in(tree: ast.AST) -> Mentions:
    """What loops go through, and what is assigned, by the names that this gives a value."""
    pairs = (pair for one in syntax.walk(tree) for pair in _given(one))
    return _by_name((name, value) for targets, value in pairs for name in dict.fromkeys(stored_in(*targets)))


@lru_cache(maxsize=64)
def takers_in(tree: ast.AST) -> Mentions:
    """Functions by the names of their parameters."""
    functions = (one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    return _by_name((name, one) for one in functions for name in dict.fromkeys(stored_in(one.args)))


@lru_cache(maxsize=64)
def calls_in(tree: ast.AST) -> Mentions:
    """Calls by the last part of what is called."""
    calls = (one for one in syntax.walk(tree) if isinstance(one, ast.Call))
    return _by_name((syntax.last_part(one.func), one) for one in calls)


def stored_in(*parts: ast.AST) -> Iterator[str]:
    """Names that a function, a comprehension or a loop gives a meaning of its own."""
    for one in (inner for part in parts for inner in syntax.walk(part)):
        if isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id


def _read(node: ast.AST) -> str:
    own = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return own if isinstance(getattr(node, "ctx", None), ast.Load) else ""


def _given(node: ast.AST) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    if isinstance(node, (ast.For, ast.comprehension)):
        yield [node.target], node.iter
    elif isinstance(node, ast.Assign):
        yield node.targets, node.value


def _by_name(pairs: Iterator[tuple[str, ast.AST]]) -> Mentions:
    found: dict[str, list[ast.AST]] = {}
    for name, one in pairs:
        found.setdefault(name, []).append(one)
    return found
