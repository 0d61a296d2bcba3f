"""Functions in the text of a cell, found by the code that was made of them."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType

from torch_inspector.facts import syntax

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@lru_cache(maxsize=256)
def definition(tree: ast.Module, code: CodeType) -> Function | None:
    """The function in a cell that a code object was made of; None if it is not there."""
    for node in syntax.walk(tree):
        if isinstance(node, Function):
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            if (name, min(d.lineno for d in [*decorators, node])) == (code.co_name, code.co_firstlineno):
                return node
    return None


def own_name(function: Function) -> str:
    """What a method calls its object: `self`, unless it says otherwise; the first parameter of any function."""
    given = [*function.args.posonlyargs, *function.args.args]
    return given[0].arg if given else "self"
