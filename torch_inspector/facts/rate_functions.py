"""The function that a `LambdaLR` asks for its factor, where whole numbers keep it at 0."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax

_WHOLE = ("int", "round", "math.floor", "torch.floor", "np.floor")


class RateFunction(NamedTuple):
    """A function of the count of steps."""

    name: str
    """Empty for a lambda."""
    cell: int | None
    line: int
    text: str
    """The expression that gives a whole number; empty where there is none."""
    mended: str
    """The same as a fraction that begins above 0."""
    whole: str = ""
    """All that it gives, where that is one expression."""


def rate_function(sources: list[tuple[int | None, str]]) -> RateFunction | None:
    """The function of the only `LambdaLR` that some cells make; None where there are several or none.

    Args:
        sources: Numbers and texts of cells.
    """
    trees = [(cell, tree) for cell, text in sources if (tree := syntax.parse(text)) is not None]
    given = [(cell, one) for cell, tree in trees for node in syntax.walk(tree) if (one := _given(node)) is not None]
    if len({ast.unparse(one) for _, one in given}) != 1:
        return None
    cell, function = given[0]
    if isinstance(function, ast.Lambda):
        return _read(function, "", cell)
    name = ast.unparse(function).rpartition(".")[2]
    defined = [(number, one) for number, tree in trees for one in syntax.walk(tree) if _is_named(one, name)]
    return _read(defined[0][1], name, defined[0][0]) if defined else None


def _given(node: ast.AST) -> ast.expr | None:
    """What a call of `LambdaLR` is given as its function."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] != "LambdaLR":
        return None
    named = [word.value for word in node.keywords if word.arg == "lr_lambda"]
    found = [*node.args[1:2], *named]
    one = found[0] if found else None
    return one.elts[0] if isinstance(one, ast.List) and len(one.elts) == 1 else one


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _read(function: ast.AST, name: str, cell: int | None) -> RateFunction:
    arguments = function.args.args if isinstance(function, (ast.FunctionDef, ast.Lambda)) else []
    counts = [one.arg for one in arguments if one.arg != "self"][:1]
    for node in syntax.walk(function):
        mended = _fraction(node, counts[0]) if counts else ""
        if mended and isinstance(node, ast.expr):
            return RateFunction(name, cell, node.lineno, ast.unparse(node), mended)
    return RateFunction(name, cell, getattr(function, "lineno", 1), "", "", _given_back(function))


def _given_back(function: ast.AST) -> str:
    if isinstance(function, ast.Lambda):
        return ast.unparse(function.body)
    returns = [node.value for node in syntax.own_expressions(function) if isinstance(node, ast.Return)]
    return ast.unparse(returns[0]) if len(returns) == 1 and returns[0] is not None else ""


def _fraction(node: ast.AST, count: str) -> str:
    """`(step + 1) / n` for `step // n` and `int(step / n)`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _WHOLE and node.args:
        inner = node.args[0]
        ratio = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div)
        return _ratio(inner, count) if ratio else ""
    return _ratio(node, count) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) else ""


def _ratio(node: ast.expr, count: str) -> str:
    if not isinstance(node, ast.BinOp):
        return ""
    above = _above_zero(node.left, count)
    return f"({above}) / {_bracketed(node.right)}" if above else ""


def _above_zero(node: ast.expr, count: str) -> str:
    """`step + 1` for `step`, and what adds a number to it as it is."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        added = [one for one in (node.left, node.right) if isinstance(one, ast.Constant) and type(one.value) is int]
        own = [one for one in (node.left, node.right) if isinstance(one, ast.Name) and one.id == count]
        return ast.unparse(node) if own and added and added[0].value else ""
    return f"{count} + 1" if isinstance(node, ast.Name) and node.id == count else ""


def _bracketed(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp) else text
