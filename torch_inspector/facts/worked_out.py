"""Names that stand for a product or a quotient, `n = batch * (time // width)`: sizes that a text has worked out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax

_SIGNS = (ast.Mult, ast.Div, ast.FloorDiv)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_worked_out(scope: ast.AST, trees: Iterable[ast.AST] = ()) -> set[str]:
    """Names and attributes, as written, that a scope can read such a number under.

    Args:
        scope: A function, a lambda, or a whole text.
        trees: Texts whose variables a function reads, whose classes set attributes, and that call it.
    """
    found = set(_given(syntax.own_expressions(scope)))
    for tree in trees if not isinstance(scope, ast.Module) else ():
        own = {one for one in _given(syntax.own_expressions(tree)) if "." not in one}
        found |= own - syntax.parameters_of(scope)
        found |= {one for one in _given(syntax.walk(tree)) if one.startswith("self.")}
        found |= set(_passed(scope, tree))
    return found


def is_worked_out(value: ast.AST) -> bool:
    """True for an expression with a product or a quotient in it."""
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, _SIGNS) for one in syntax.walk(value))


def _given(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from (name for target in node.targets for name in _of(target, node.value))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _of(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and (isinstance(node.op, _SIGNS) or is_worked_out(node.value)):
            yield ast.unparse(node.target)


def _of(target: ast.expr, value: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _of(one, part)
    elif isinstance(target, (ast.Name, ast.Attribute)) and is_worked_out(value):
        yield ast.unparse(target)


def _passed(scope: ast.AST, tree: ast.AST) -> Iterator[str]:
    """Parameters of a function that a call in the text works out: `cut(x, batch * time // 8)`."""
    if not isinstance(scope, _Function):
        return
    names = [one.arg for one in scope.args.args]
    for call in (one for one in syntax.walk(tree) if isinstance(one, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called == scope.name:
            bound = names[1:] if names[:1] == ["self"] else names
            given = (*zip(bound, call.args, strict=False), *((one.arg, one.value) for one in call.keywords))
            yield from (name for name, value in given if name and is_worked_out(value))
