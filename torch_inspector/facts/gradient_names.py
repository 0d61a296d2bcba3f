"""What a text calls gradients, and whether it scales them in place: `g = p.grad; g /= n`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax

# What gives the same numbers, or the same tensors one by one.
_SAME = frozenset(["view", "view_as", "flatten", "ravel", "reshape", "squeeze", "detach", "values", "items", "copy"])
_LISTS = frozenset(["list", "tuple", "zip", "enumerate", "reversed", "iter", "filter"])
_SCALES = frozenset(["div_", "divide_", "true_divide_", "mul_", "multiply_", "copy_", "set_", "lerp_"])
# A list of a list of them.
_ROUNDS = 3


def names_of_gradients(tree: ast.AST, known: Iterable[str] = ()) -> set[str]:
    """The variables of a text that stand for gradients themselves, not for what is computed of them.

    Args:
        tree: The text, or a function.
        known: Names that stand for gradients already.
    """
    names = set(known)
    pairs = list(_bindings(tree))
    for _ in range(_ROUNDS):
        found = (target for target, value in pairs if is_gradient(value, names))
        names = names.union(*map(syntax.names_in, found))
    return names


def is_gradient(node: ast.AST | None, names: set[str]) -> bool:
    """True for `p.grad`, for a part of it, and for a container of gradients."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        return node.attr == "grad" or (node.attr == "data" and is_gradient(node.value, names))
    return any(is_gradient(one, names) for one in _same(node))


def _same(node: ast.AST | None) -> list[ast.expr]:
    """The expressions whose tensors an expression gives as they are, or as a list."""
    if isinstance(node, ast.Call):
        return _handed_on(node)
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    made = getattr(node, "value" if isinstance(node, ast.DictComp) else "elt", None)
    return [made] if isinstance(made, ast.expr) else []


def _handed_on(call: ast.Call) -> list[ast.expr]:
    function = call.func
    if isinstance(function, ast.Attribute):
        return [function.value] if function.attr in _SAME else []
    return call.args if isinstance(function, ast.Name) and function.id in _LISTS else []


def _bindings(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What gets a value in a text, and the value, or what it is an element of."""
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            yield node.target, node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter


def scales_gradients(tree: ast.AST, known: Iterable[str] = (), functions: frozenset[str] = frozenset()) -> bool:
    """True if a text changes gradients where they are, by a variable, `out=` or one of some functions."""
    names = names_of_gradients(tree, known)
    return any(_scales(node, names, functions) for node in syntax.walk(tree))


def _scales(node: ast.AST, names: set[str], functions: frozenset[str]) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Div, ast.Mult)) and is_gradient(node.target, names)
    if isinstance(node, ast.Assign):
        parts = (one.value for one in node.targets if isinstance(one, ast.Subscript) or _is_data(one))  # type: ignore[attr-defined]
        return any(is_gradient(one, names) for one in parts)
    if not isinstance(node, ast.Call):
        return False
    name = syntax.last_part(node.func)
    if isinstance(node.func, ast.Attribute) and name in _SCALES and is_gradient(node.func.value, names):
        return True
    given = [one.value for one in node.keywords if one.arg == "out" or name in functions]
    return any(is_gradient(one, names) for one in (*given, *(node.args if name in functions else ())))


def _is_data(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"
