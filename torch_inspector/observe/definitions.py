"""Functions in the text of a cell, found by the code that was made of them."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType

from torch_inspector.facts import syntax

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def definition(tree: ast.Module, code: CodeType) -> Function | None:
    """The function in a cell that a code object was made of; None if it is not there, or one of several lambdas."""
    found = _by_start(tree).get((code.co_name, code.co_firstlineno), [])
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=64)
def _by_start(tree: ast.Module) -> dict[tuple[str, int], list[Function]]:
    """All functions of a text: it is gone through once for all that are asked for."""
    found: dict[tuple[str, int], list[Function]] = {}
    for one in syntax.walk(tree):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found.setdefault(_start_of(one), []).append(one)
    return found


def plain_definition(tree: ast.Module, code: CodeType) -> ast.FunctionDef | None:
    """The same of a function with a name and without decorators."""
    found = definition(tree, code)
    return found if isinstance(found, ast.FunctionDef) and not found.decorator_list else None


def _start_of(function: Function) -> tuple[str, int]:
    if isinstance(function, ast.Lambda):
        return "<lambda>", function.lineno
    return function.name, min(one.lineno for one in [*function.decorator_list, function])


def own_name(function: Function) -> str:
    """What a method calls its object: `self`, unless it says otherwise; the first parameter of any function."""
    given = [*function.args.posonlyargs, *function.args.args]
    return given[0].arg if given else "self"
