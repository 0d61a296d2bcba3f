"""Functions of the user's that train, as their text says: they go backward, or call others that do."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from torch_inspector.facts import syntax

_STEPS = frozenset(["backward"])
_ROUNDS = 5


def trainers(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Names of such functions and methods."""
    return _among(tuple(trees))


@lru_cache(maxsize=16)
def _among(trees: tuple[ast.Module, ...]) -> frozenset[str]:
    functions = [one for tree in trees for one in _functions_of(tree)]
    found = frozenset[str]()
    for _ in range(_ROUNDS):
        more = {name for name, called in functions if called & (_STEPS | found)}
        if more <= found:
            break
        found |= more
    return found


@lru_cache(maxsize=128)
def _functions_of(tree: ast.Module) -> tuple[tuple[str, frozenset[str]], ...]:
    """Names of the functions of a cell, each with the names of what it calls."""
    functions = (one for one in syntax.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return tuple((one.name, frozenset(_called_in(one))) for one in functions)


def _called_in(function: ast.AST) -> Iterable[str]:
    calls = (one.func for one in syntax.walk(function) if isinstance(one, ast.Call))
    return (str(getattr(one, "attr", "") or getattr(one, "id", "")) for one in calls)
