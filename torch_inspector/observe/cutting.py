"""What loses the history of a tensor, as the text says it: `detach()`, `item()`, NumPy, `argmax`, `no_grad`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
    **dict.fromkeys(("np.array", "np.asarray", "numpy.array", "numpy.asarray"), "numpy"),
}
_WITHOUT = ("no_grad", "inference_mode")


def cuts_in(expression: ast.expr, scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Parts of an expression that lose the history of something: the part, the something, and how."""
    for node in syntax.walk(expression):
        if isinstance(node, ast.Call):
            yield from _cuts_of_call(node)
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            yield node, node.value, "data"
        elif isinstance(node, ast.Compare):
            yield node, node, "compare"
        elif isinstance(node, ast.Subscript) and _is_index_of_max(node):
            yield node, node.value, "argmax"
    block = _without_grad(expression, scope)
    if block is not None:
        yield block, expression, "no_grad"


def _cuts_of_call(node: ast.Call) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    name = dotted(node.func)
    if name in _FUNCTIONS and node.args:
        yield node, node.args[0], _FUNCTIONS[name]
    elif name.startswith(("np.", "numpy.")) and node.args:
        yield node, node.args[0], "numpy"
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        yield node, node.func.value, _METHODS[node.func.attr]


def _is_index_of_max(node: ast.Subscript) -> bool:
    """True for `scores.max(1)[1]`."""
    called = node.value.func if isinstance(node.value, ast.Call) else None
    second = isinstance(node.slice, ast.Constant) and node.slice.value == 1
    return second and isinstance(called, ast.Attribute) and called.attr in ("max", "min", "topk", "sort")


def _without_grad(expression: ast.expr, scope: ast.AST) -> ast.expr | None:
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
