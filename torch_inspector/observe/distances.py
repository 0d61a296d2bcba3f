"""Differences that are measured, as a penalty or a report does: squared, a norm; and tests that ask for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax

_MEASURES = frozenset(["dist", "mse_loss", "l1_loss", "square", "norm", "vector_norm", "matrix_norm"])
# What leaves the difference what it is.
_SHOWS = frozenset(["flatten", "view", "reshape", "ravel", "float", "double", "detach", "cpu", "data", "cat", "stack"])
# What makes a check of it, or tells the one largest.
_CHECKS = frozenset(["max", "amax", "maximum", "any", "all", "equal", "allclose", "isclose", "count_nonzero"])
_SUMS = frozenset(["sum", "mean", "norm"])
# Products that are a square where both sides are one.
_PRODUCTS = frozenset(["dot", "vdot", "inner", "matmul", "mul", "multiply"])
# Names in a row that are followed.
_NAMES = 2
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
    if _called(pair) in _MEASURES:
        return not _is_checked(pair, around)
    return any(not _is_checked(top, around) for top in _measures(pair, scope, around))


def is_tested(pair: ast.expr, scope: ast.AST, trees: list[ast.Module]) -> bool:
    """True if some test asks for it, by itself, by a variable, or by the function that it stands in."""
    name = getattr(scope, "name", "")
    if _is_asked(pair, scope):
        return True
    calls = (one for tree in trees for one in syntax.walk(tree) if name and _is_use(one, scope, name))
    scopes = [one for tree in trees for one in (tree, *syntax.functions_of(tree))] if name else []
    uses = {id(one): one for one in calls}
    asked = ((one, inner) for inner in scopes for one in syntax.own_expressions(inner) if id(one) in uses)
    return any(_is_asked(one, inner) and not _is_of_another(one, scope, trees) for one, inner in asked)


def _is_use(node: ast.AST, scope: ast.AST, name: str) -> bool:
    """True for a call of a function, and for the value of a property."""
    decorated = bool(getattr(scope, "decorator_list", ()))
    return _called(node) == name or (decorated and isinstance(node, ast.Attribute) and node.attr == name)


def _is_of_another(use: ast.AST, scope: ast.AST, trees: list[ast.Module]) -> bool:
    """True for `opt.step()` where all that `opt` is given comes from a library that is not handed the function."""
    func = use.func if isinstance(use, ast.Call) else None
    owner = syntax.name_of(func.value) if isinstance(func, ast.Attribute) else ""
    nodes = [one for tree in trees for one in syntax.walk(tree)]
    given = [one.value for one in nodes if isinstance(one, ast.Assign) and owner in map(syntax.name_of, one.targets)]
    bound = sum(owner in _bound(one) for one in nodes) if owner and given else 0
    own = {name for one in nodes for name in _bound(one)} if bound == len(given) else set()
    kinds = [one.name for one in nodes if isinstance(one, ast.ClassDef) and any(part is scope for part in one.body)]
    told = {*kinds, getattr(scope, "name", "")} - {""}
    return bool(own) and all(isinstance(one, ast.Call) and _is_foreign(one, own, told) for one in given)


def _bound(node: ast.AST) -> tuple[str, ...]:
    """Names and fields that a node gives a value, without imports."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return (node.name,)
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    return (node.arg,) if isinstance(node, ast.arg) else (syntax.name_of(node),) if stored else ()


def _is_foreign(call: ast.Call, own: set[str], told: set[str]) -> bool:
    """True for a call of something that no cell defines, which is not given what has one of some names."""
    named = [one for part in (*call.args, *call.keywords) for one in syntax.walk(part)]
    called = {syntax.name_of(one) for one in syntax.walk(call.func)} - {""}
    return bool(called) and not called & own and told.isdisjoint(map(syntax.name_of, named))


def _called(node: ast.AST) -> str:
    return syntax.name_of(node.func) if isinstance(node, ast.Call) else ""


@lru_cache(maxsize=64)
def _loads(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """The places where a scope reads a variable, by its name."""
    found: dict[str, list[ast.Name]] = {}
    for one in syntax.own_expressions(scope):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            found.setdefault(one.id, []).append(one)
    return found


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


def _measures(node: ast.AST, scope: ast.AST, around: dict[int, ast.AST], depth: int = 0) -> Iterator[ast.AST]:
    """What measures a difference, also where variables hold it, or its absolute values, in between."""
    top, kept = _measure_of(node, around), _shown(node, around)
    if top is not None:
        yield top
        return
    amount = _amount_of(kept, around)
    summed = _sum_of(amount, around) if amount is not None else None
    if summed is not None:
        yield summed
        return
    name = _name_given(amount if amount is not None else kept, around) if depth < _NAMES else ""
    for one in _loads(scope).get(name, ()):
        summed = _sum_of(one, around) if amount is not None else None
        yield from (summed,) if summed is not None else _measures(one, scope, around, depth + 1)


def _name_given(node: ast.AST, around: dict[int, ast.AST]) -> str:
    given = around.get(id(_shown(node, around)))
    target = given.targets[0] if isinstance(given, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def _call_of(node: ast.AST, around: dict[int, ast.AST]) -> ast.Call | None:
    """The call that takes an expression, as its owner or as an argument."""
    above = around.get(id(node))
    call = around.get(id(above)) if isinstance(above, ast.Attribute) else above
    return call if isinstance(call, ast.Call) else None


def _measure_of(node: ast.AST, around: dict[int, ast.AST]) -> ast.AST | None:
    """What measures a difference: `(p - o) ** 2`, `torch.norm(p - o)`, `d.dot(d)`; absolute values are none yet."""
    kept = _shown(node, around)
    above = around.get(id(kept))
    if isinstance(above, ast.BinOp):
        return above if _is_square(above, node) else None
    call = _call_of(kept, around)
    return call if call is not None and (_called(call) in _MEASURES or _is_squared(call, node)) else None


def _amount_of(node: ast.AST, around: dict[int, ast.AST]) -> ast.Call | None:
    """`d.abs()`, `torch.abs(d)` and `abs(d)` of a difference."""
    call = _call_of(node, around)
    return call if call is not None and _called(call) in {"abs", "absolute"} else None


def _sum_of(node: ast.AST, around: dict[int, ast.AST]) -> ast.Call | None:
    call = _call_of(_shown(node, around), around)
    return call if call is not None and _called(call) in _SUMS else None


def _is_square(node: ast.BinOp, difference: ast.AST) -> bool:
    """True for `d ** 2`, `d * w * d` and `d @ d`."""
    if isinstance(node.op, ast.Pow):
        return _is_two(node.right)
    return isinstance(node.op, (ast.Mult, ast.MatMult)) and _is_in_both([node.left, node.right], difference)


def _is_squared(call: ast.Call, difference: ast.AST) -> bool:
    """True for `d.pow(2)`, `torch.pow(d, exponent=2)`, `torch.dot(d, d)` and `d.dot(d)`."""
    if _called(call) in {"pow", "float_power"}:
        return any(_is_two(one) for one in (*call.args[-1:], *(k.value for k in call.keywords if k.arg == "exponent")))
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) and len(call.args) == 1 else []
    return _called(call) in _PRODUCTS and _is_in_both([*owner, *call.args], difference)


def _is_in_both(sides: list[ast.expr], difference: ast.AST) -> bool:
    text = ast.unparse(difference)
    return len(sides) > 1 and all(any(ast.unparse(part) == text for part in _expressions(one)) for one in sides)


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
    names = {one.id for one in inside.values() if isinstance(one, ast.Name)}
    return id(node) in inside or _is_read_by(names, node, scope)


def _is_read_by(names: set[str], node: ast.AST, scope: ast.AST, depth: int = 0) -> bool:
    """True if one of some names holds an expression and nothing else, perhaps by way of other names."""
    held = {name for name in _given(node, scope) if _holds_only(name, node, scope)}
    if depth == _NAMES or held & names:
        return bool(held & names)
    reads = (one for name in held for one in _loads(scope).get(name, ()))
    return any(_is_read_by(names, one, scope, depth + 1) for one in reads)


def _given(node: ast.AST, scope: ast.AST) -> Iterator[str]:
    """Variables that are given an expression, or what is worked out of it."""
    for one in syntax.own_expressions(scope):
        if isinstance(one, (ast.Assign, ast.AugAssign)) and any(part is node for part in syntax.walk(one.value)):
            yield from (target.id for target in syntax.targets_of(one) if isinstance(target, ast.Name))


def _holds_only(name: str, node: ast.AST, scope: ast.AST) -> bool:
    """True if nothing else is added in a variable, as a loss has it."""
    own = (one for one in syntax.own_expressions(scope) if isinstance(one, (ast.Assign, ast.AugAssign)))
    values = [one.value for one in own if any(syntax.name_of(target) == name for target in syntax.targets_of(one))]
    return all(isinstance(one, ast.Constant) or _is_alone(one, node, name) for one in values)


def _is_alone(value: ast.AST, node: ast.AST, name: str) -> bool:
    """True if an expression is in a value, and nothing is added to it there but what a variable holds so far."""
    parts = list(syntax.walk(value))
    sums = [one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)]
    return any(one is node for one in parts) and not any(_adds(one, node, name) for one in sums)


def _adds(total: ast.BinOp, node: ast.AST, name: str) -> bool:
    """True for `loss + d`; not for `1e-8 + d`, nor for another part of the same two things: `w0 - o[0] + w1 - o[1]`."""
    sides = (total.left, total.right), (total.right, total.left)
    others = [other for one, other in sides if any(part is node for part in syntax.walk(one))]
    same = (isinstance(other, ast.Constant) or syntax.name_of(other) == name for other in others)
    return bool(others) and not any(same) and not any(_roots(node) <= _roots(other) for other in others)


def _roots(node: ast.AST) -> set[str]:
    """The names that an expression reads; of `self` its fields."""
    fields = {one.attr for one in syntax.walk(node) if isinstance(one, ast.Attribute) and _is_own(one.value)}
    return fields | {one.id for one in syntax.walk(node) if isinstance(one, ast.Name) and not _is_own(one)}


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
