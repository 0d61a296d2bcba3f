"""What loses the history of a tensor, as the text says it: `detach()`, `item()`, NumPy, `argmax`, draws, `no_grad`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_METHODS = {
    **dict.fromkeys(("detach", "detach_"), "detach"),
    **dict.fromkeys(("item", "tolist"), "item"),
    **dict.fromkeys(("argmax", "argmin", "argsort", "nonzero"), "argmax"),
    **dict.fromkeys(("long", "int", "bool", "byte", "short"), "whole"),
    "numpy": "numpy",
}
_FUNCTIONS = {
    **dict.fromkeys(("torch.tensor", "torch.FloatTensor", "torch.Tensor", "torch.from_numpy"), "tensor"),
    **dict.fromkeys(("torch.argmax", "torch.argmin", "torch.argsort"), "argmax"),
    **dict.fromkeys(("float", "int", "bool"), "item"),
    **dict.fromkeys(("Variable", "autograd.Variable", "torch.autograd.Variable"), "leaf"),
    **dict.fromkeys(("np.array", "np.asarray", "numpy.array", "numpy.asarray"), "numpy"),
}
_DISTRIBUTION = re.compile(r"dist|Categorical|Bernoulli|Normal\(")
_WITHOUT = ("no_grad", "inference_mode")


def cuts_in(expression: ast.expr, scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Parts of an expression that lose the history of something: the part, the something, and how."""
    for node in syntax.walk(expression):
        found = cut_of(node) or _sampled(node)
        # What is wrapped may have lost its history before, as in `Variable(loss.data)`.
        if found is not None and isinstance(node, ast.expr) and not (found[1] == "leaf" and cut_of(found[0])):
            yield node, *found
    block = without_grad(expression, scope)
    if block is not None:
        yield block, expression, "no_grad"


def cut_of(node: ast.AST) -> tuple[ast.expr, str] | None:
    """What a node loses the history of, and how; None if it keeps that."""
    if isinstance(node, ast.Call):
        return _cut_of_call(node)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value, "data"
    if isinstance(node, ast.Compare):
        return node, "compare"
    if isinstance(node, ast.Subscript) and is_sorting(node.value) and _is_one(node.slice):
        return node.value, "argmax"
    if isinstance(node, ast.Attribute) and node.attr == "indices" and is_sorting(node.value):
        return node.value, "argmax"
    return None


def _cut_of_call(node: ast.Call) -> tuple[ast.expr, str] | None:
    name = dotted(node.func)
    if name in _FUNCTIONS and node.args:
        return node.args[0], _FUNCTIONS[name]
    if name in ("torch.multinomial", "torch.bernoulli") and node.args:
        return node.args[0], "drawn"
    if isinstance(node.func, ast.Attribute) and _draws(node, node.func):
        return node.func.value, "drawn"
    if name.startswith(("np.", "numpy.")) and node.args:
        return node.args[0], "numpy"
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return node.func.value, _METHODS[node.func.attr]
    return None


def _draws(node: ast.Call, method: ast.Attribute) -> bool:
    """True for `chances.multinomial(1)` and for `dist.sample()` of what is called a distribution."""
    if method.attr == "sample" and not node.args and not node.keywords:
        return _DISTRIBUTION.search(ast.unparse(method.value)) is not None
    return method.attr == "multinomial" and bool(node.args)


def _sampled(node: ast.AST) -> tuple[ast.expr, str] | None:
    """`actor(state)` of `actor(state).sample()`: a distribution, if a model gave it."""
    method = node.func if isinstance(node, ast.Call) and not node.keywords else None
    return (method.value, "drawn") if isinstance(method, ast.Attribute) and method.attr == "sample" else None


def is_draw(node: ast.AST) -> bool:
    """True for a draw by its own text: of what is called a distribution, or by a function of torch."""
    found = cut_of(node)
    return found is not None and found[1] == "drawn"


def is_sorting(node: ast.AST) -> bool:
    """True for a call that gives values, and positions as its second result: `scores.max(1)`."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("max", "min", "topk", "sort")


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def without_grad(expression: ast.expr, scope: ast.AST) -> ast.expr | None:
    """What switches gradients off around an expression: a `with` block or a decorator."""
    for node in syntax.walk(scope):
        if isinstance(node, ast.With) and node.lineno <= expression.lineno <= (node.end_lineno or 0):
            for item in node.items:
                if _switches_off(item.context_expr):
                    return item.context_expr
    decorators = scope.decorator_list if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return next((one for one in decorators if _switches_off(one)), None)


def _switches_off(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return dotted(called).rpartition(".")[2] in _WITHOUT


class Off(NamedTuple):
    """What switches gradients off: `torch.no_grad()`."""

    node: ast.expr
    is_decorator: bool


def decorators_of(scope: ast.AST) -> list[str]:
    """Names of the decorators of a function, as of `@timed` and `@timed(3)`."""
    decorators = scope.decorator_list if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return [name for one in decorators if (name := dotted(one.func if isinstance(one, ast.Call) else one))]


@lru_cache(maxsize=64)
def wrapped_without_grad(decorator: ast.AST) -> Off | None:
    """What switches gradients off around the function that a decorator was given, in the function that it makes."""
    functions = [one for one in syntax.walk(decorator) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    given = {argument.arg for one in functions for argument in one.args.args}
    for inner in functions:
        calls = [one for one in syntax.own_expressions(inner) if isinstance(one, ast.Call)]
        own = {argument.arg for argument in inner.args.args}
        for call in calls if inner is not decorator else ():
            if isinstance(call.func, ast.Name) and call.func.id in given - own:
                off = without_grad(call, inner)
                return Off(off, off in inner.decorator_list) if off is not None else None
    return None
