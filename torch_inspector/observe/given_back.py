"""What a call of a function of the user's gave back, as far as its one `return` tells; nothing is run."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe.pairs import called
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_tensor
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_inspector.observe.operands import Names
    from torch_inspector.observe.pairs import TreeOf

# Decorators that leave the result as it is.
_PLAIN = frozenset(["no_grad", "inference_mode", "enable_grad", "staticmethod"])


def given_back(call: ast.Call, names: Names, tree_of: TreeOf, local: Callable[[ast.AST, Names, int], Names]) -> Any:
    """A live tensor or a `Sized`; `UNKNOWN` for what is neither, and where there are several ways out.

    Args:
        call: A call in the user's text.
        names: What names mean around it.
        tree_of: Finds the parsed cell that a function comes from.
        local: Makes of what names mean in a function the same at a line of it, with its variables hiding those outside.
    """
    for node, inner in called(call, names, tree_of) if _is_named(call.func, names) else ():
        result = _result_of(node)
        value = local(node, inner, result.lineno).value(result) if result is not None else UNKNOWN
        return value if is_tensor(value) or type(value) is Sized else UNKNOWN
    return UNKNOWN


def _is_named(callee: ast.expr, names: Names) -> bool:
    """True for `f` and `self.f`: whatever else is worked out first would be worked out once more in each such call."""
    owner = callee.value if isinstance(callee, ast.Attribute) else callee
    return isinstance(owner, ast.Name) and owner.id not in names.given


@lru_cache(maxsize=128)
def _result_of(function: ast.AST) -> ast.expr | None:
    """The expression that a function gives back, if it is the only one."""
    if isinstance(function, ast.Lambda):
        return function.body
    if not isinstance(function, ast.FunctionDef) or not all(map(_is_plain, function.decorator_list)):
        return None
    nodes = list(syntax.own_expressions(function))
    returns = [one.value for one in nodes if isinstance(one, ast.Return)]
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in nodes)
    return returns[0] if len(returns) == 1 and not yields else None


def _is_plain(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return dotted(named).rpartition(".")[2] in _PLAIN
