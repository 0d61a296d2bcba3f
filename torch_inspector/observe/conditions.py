"""What a condition of the text came to when it was asked, if it compares sizes or plain values that stay the same."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.seen import Spot
from torch_inspector.observe.shapes import UNKNOWN, shape_of
from torch_inspector.observe.statements import late_at, stores_in

if TYPE_CHECKING:
    from torch_inspector.observe.expressions import Scope

_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_PLAIN = (int, float, str, bool)
# What a side may be made of, beside names: `len(x) * 2`, `x.shape[1]`, `x.size(0)`, `x.ndim`.
_PARTS = (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.operator, ast.unaryop, ast.expr_context)
_SIZES, _ASKS = frozenset(["shape", "ndim", "size", "dim"]), frozenset(["len"])


def outcome(scope: Scope, test: ast.expr) -> Any:
    """True or False; `UNKNOWN` for what is no comparison of that kind."""
    if isinstance(test, ast.BoolOp):
        return _joined(test, [outcome(scope, one) for one in test.values])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = outcome(scope, test.operand)
        return inner if inner is UNKNOWN else not inner
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return UNKNOWN
    sides = [test.left, test.comparators[0]]
    if not all(map(_is_simple, sides)) or not all(_is_kept(scope, one, test) for one in syntax.names_in(test)):
        return UNKNOWN
    with scope.names.at(Spot(scope.node, test.lineno)):
        return _compared(test.ops[0], *(_side(scope, one) for one in sides))


def _joined(test: ast.BoolOp, values: Iterable[Any]) -> Any:
    decides, found = isinstance(test.op, ast.Or), list(values)
    if decides in [one for one in found if one is not UNKNOWN]:
        return decides
    return UNKNOWN if any(one is UNKNOWN for one in found) else not decides


def _compared(sign: ast.cmpop, one: Any, two: Any) -> Any:
    if one is UNKNOWN or two is UNKNOWN:
        return UNKNOWN
    if isinstance(sign, (ast.Is, ast.IsNot)) and two is None:
        return (one is None) is isinstance(sign, ast.Is)
    compares = _COMPARES.get(type(sign))
    numbers = all(is_one_of(side, _PLAIN[:2]) for side in (one, two))
    plain = numbers or all(is_one_of(side, _PLAIN) and type(side) is type(one) for side in (one, two))
    return compares(one, two) if compares is not None and plain else UNKNOWN


def _is_simple(side: ast.expr) -> bool:
    return all(_is_part(one) for one in syntax.walk(side))


def _is_part(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _SIZES
    if isinstance(node, ast.Call):
        asked = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return asked in _SIZES | _ASKS and not node.keywords
    return isinstance(node, _PARTS)


def _is_kept(scope: Scope, name: str, test: ast.expr) -> bool:
    """True for a name that is given no value later, in this scope and, if it is one of outside, in the whole cell."""
    if name in late_at(scope.node, test.lineno):
        return False
    own = not scope.function or name in stores_in(scope.node) or name in syntax.parameters_of(scope.node)
    tree = scope.reading.file.tree
    stored = (one for one in syntax.walk(tree) if isinstance(one, ast.Name)) if tree is not None and not own else ()
    return own or not any(one.id == name and not isinstance(one.ctx, ast.Load) for one in stored)


def _side(scope: Scope, side: ast.expr) -> Any:
    """The value of a side; sizes of what grows, and lengths that are not known, are none."""
    for one in syntax.walk(side):
        if isinstance(one, ast.Name) and one.id not in _ASKS:
            value = scope.names.value(one)
            shape = shape_of(value)
            if shape is not None and -1 in shape:
                return UNKNOWN
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "dim":
        shape = shape_of(scope.names.value(side.func.value))
        return UNKNOWN if shape is None else len(shape)
    return scope.names.value(side)
