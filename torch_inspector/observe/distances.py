"""Differences that are measured, as a penalty or a report does: squared, a norm; and tests that ask for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax

_MEASURES = frozenset(["dist", "mse_loss", "l1_loss", "square", "norm", "vector_norm", "matrix_norm"])
# What leaves the difference what it is.
_SHOWS = frozenset(["flatten", "view", "reshape", "ravel", "float", "double", "detach", "cpu", "data", "cat", "stack"])
# What makes a check of it, or tells the one largest.
_CHECKS = frozenset(["max", "amax", "maximum", "any", "all", "equal", "allclose", "isclose", "count_nonzero"])
_SUMS = frozenset(["sum", "mean", "norm"])
_LISTS = (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple)
_TESTS = (ast.Assert, ast.If, ast.While, ast.IfExp)


def is_measured(pair: ast.expr, scope: ast.AST, tree: ast.Module) -> bool:
    """True if a difference is squared, or a norm or a mean distance is taken of it; not for a largest one, or a sum.

    Args:
        pair: The difference, or a call that is a distance by itself.
        scope: The function or cell that it stands in.
        tree: All of the cell.
    """
    around = syntax.parents(tree)
    top = pair if _called(pair) in _MEASURES else _measure_of(pair, around)
    if top is not None:
        return not _is_checked(top, around)
    given = around.get(id(_shown(pair, around)))
    if not isinstance(given, ast.Assign) or not isinstance(given.targets[0], ast.Name):
        return False
    name = given.targets[0].id
    reads = (one for one in _loads(scope) if one.id == name)
    tops = [_measure_of(one, around) for one in reads]
    return any(one is not None and not _is_checked(one, around) for one in tops)


def is_tested(pair: ast.expr, scope: ast.AST, trees: list[ast.Module]) -> bool:
    """True if some test asks for it, by itself, by a variable, or by the function that it stands in."""
    name = getattr(scope, "name", "")
    if _is_asked(pair, scope):
        return True
    calls = (one for tree in trees for one in syntax.walk(tree) if name and _is_use(one, scope, name))
    scopes = [one for tree in trees for one in (tree, *syntax.functions_of(tree))] if name else []
    uses = {id(one): one for one in calls}
    return any(id(one) in uses and _is_asked(one, inner) for inner in scopes for one in syntax.own_expressions(inner))


def _is_use(node: ast.AST, scope: ast.AST, name: str) -> bool:
    """True for a call of a function, and for the value of a property."""
    decorated = bool(getattr(scope, "decorator_list", ()))
    return _called(node) == name or (decorated and isinstance(node, ast.Attribute) and node.attr == name)


def _called(node: ast.AST) -> str:
    return syntax.name_of(node.func) if isinstance(node, ast.Call) else ""


def _loads(scope: ast.AST) -> Iterator[ast.Name]:
    own = (one for one in syntax.own_expressions(scope) if isinstance(one, ast.Name))
    return (one for one in own if isinstance(one.ctx, ast.Load))


def _shown(difference: ast.AST, around: dict[int, ast.AST]) -> ast.AST:
    """The largest expression that is still a difference, of other sizes perhaps, or times something else."""
    node = difference
    while (above := around.get(id(node))) is not None:
        scaled = isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Mult, ast.Div))
        shown = isinstance(above, ast.Attribute) and above.attr in _SHOWS
        if not (scaled or shown or isinstance(above, _LISTS) or _called(above) in _SHOWS):
            return node
        if isinstance(above, ast.BinOp) and _is_square(above, difference):
            return node
        node = above
    return node


def _measure_of(node: ast.AST, around: dict[int, ast.AST]) -> ast.AST | None:
    """What measures a difference: `(p - o) ** 2`, `torch.norm(p - o)`, `(p - o).abs().sum()`."""
    above = around.get(id(_shown(node, around)))
    if isinstance(above, ast.BinOp):
        return above if _is_square(above, node) else None
    call = around.get(id(above)) if isinstance(above, ast.Attribute) else above
    name = _called(call) if call is not None else ""
    if name == "abs":
        above = around.get(id(call))
        return above if isinstance(above, ast.Attribute) and above.attr in _SUMS else None
    even = name == "pow" and isinstance(call, ast.Call) and bool(call.args) and _is_two(call.args[-1])
    return call if name in _MEASURES or even else None


def _is_square(node: ast.BinOp, difference: ast.AST) -> bool:
    """True for `d ** 2` and `d * w * d`."""
    if isinstance(node.op, ast.Pow):
        return _is_two(node.right)
    text = ast.unparse(difference)
    sides = (node.left, node.right) if isinstance(node.op, ast.Mult) else ()
    return bool(sides) and all(any(ast.unparse(part) == text for part in _expressions(one)) for one in sides)


def _expressions(node: ast.expr) -> list[ast.expr]:
    return [node, *(one for one in syntax.walk(node) if isinstance(one, ast.expr))]


def _is_two(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value == 2  # noqa: PLR2004


def _is_checked(node: ast.AST, around: dict[int, ast.AST]) -> bool:
    """True if a check, or the largest of several, is made of it in the same statement."""
    above = around.get(id(node))
    while above is not None and not isinstance(above, ast.stmt):
        if _called(above) in _CHECKS or isinstance(above, ast.Compare):
            return True
        above = around.get(id(above))
    return False


def _is_asked(node: ast.AST, scope: ast.AST) -> bool:
    """True if a test or a comparison in a scope has an expression, or a variable that holds nothing else."""
    own = syntax.own_expressions(scope)
    tests = [one.test for one in own if isinstance(one, _TESTS)]
    tests += [
        one for one in own if isinstance(one, ast.Compare) or (isinstance(one, ast.Call) and _called(one) in _CHECKS)
    ]
    inside = {id(part): part for test in tests for part in syntax.walk(test)}
    if id(node) in inside or any(test is node for test in tests):
        return True
    names = {one.id for one in inside.values() if isinstance(one, ast.Name)}
    return any(name in names and _holds_only(name, node, scope) for name in _given(node, scope))


def _given(node: ast.AST, scope: ast.AST) -> Iterator[str]:
    """Variables that are given an expression, or what is worked out of it."""
    for one in syntax.own_expressions(scope):
        if isinstance(one, (ast.Assign, ast.AugAssign)) and any(part is node for part in syntax.walk(one.value)):
            yield from (target.id for target in syntax.targets_of(one) if isinstance(target, ast.Name))


def _holds_only(name: str, node: ast.AST, scope: ast.AST) -> bool:
    """True if nothing else is added in a variable, as a loss has it."""
    own = (one for one in syntax.own_expressions(scope) if isinstance(one, (ast.Assign, ast.AugAssign)))
    values = [one.value for one in own if any(syntax.name_of(target) == name for target in syntax.targets_of(one))]
    return all(isinstance(one, ast.Constant) or _is_alone(one, node) for one in values)


def _is_alone(value: ast.AST, node: ast.AST) -> bool:
    """True if an expression is in a value, and nothing is added to it there."""
    around = syntax.walk(value)
    if not any(one is node for one in around):
        return False
    sums = (one for one in around if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add))
    return not any(any(part is node for part in syntax.walk(one)) for one in sums)
