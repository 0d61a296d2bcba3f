"""Operands that the text stretches against each other to a table which it adds up at once, where no graph tells."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from math import prod

from torch_inspector.facts import ExpressionFact, Shape, syntax
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.ran import compared_value, surely_ran
from torch_inspector.observe.shapes import Sized, before_expand, is_tensor, together
from torch_inspector.observe.source import dotted

# As in `blown.py`: smaller tables are not noted, nor those that are less than so many times larger than the rest.
_LEAST_NBYTES, _TIMES = 1 << 20, 8
_REDUCES = frozenset(["sum", "mean", "norm", "amax", "amin", "max", "min", "logsumexp", "prod"])
_ELEMENTWISE = frozenset(["pow", "abs", "square", "sqrt", "exp", "log", "tanh", "sigmoid", "relu", "neg", "clamp"])
_MEETS = {ast.Sub: "Sub", ast.Add: "Add", ast.Mult: "Mul", ast.Div: "Div"}
_SIGNS = {"sub": ast.Sub, "add": ast.Add, "mul": ast.Mult, "multiply": ast.Mult, "div": ast.Div}
_FLOAT_NBYTES = 4
# Operations between the meeting and the reduction.
_WAY = 12


def tabled(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`((a[:, None] - b[None]) ** 2).sum(-1)`, if it surely ran, and the shapes of its operands are known."""
    how, operand, axes = _reduction(node)
    meetings = _meetings(scope, operand, node) if operand is not None and axes else ()
    facts = ((meeting, plain, _table(where, meeting, axes)) for meeting, where, plain in meetings)
    found = next(((meeting, plain, table) for meeting, plain, table in facts if table is not None), None)
    # No graph tells that it was made: a way for small inputs may stand beside one for large ones.
    if found is not None and surely_ran(scope, node, statement, compared_value):
        meeting, plain, (shapes, nbytes) = found
        # Between the meeting of two factors and their sum nothing may stand that is to be called a product.
        names = (how, ("" if plain else "…") + _MEETS[type(meeting.op)])
        yield scope.fact("blown-up", node, statement, names=names, shapes=shapes, nbytes=nbytes)


def _table(where: Scope, meeting: ast.BinOp, axes: tuple[int, ...]) -> tuple[tuple[Shape, ...], int] | None:
    """Shapes and bytes of the table that two operands make, if it is large."""
    values = [where.names.value(side) for side in (meeting.left, meeting.right)]
    sides = [shape for value in values if tensor_or_shape(value) and (shape := before_expand(value))]
    if len(sides) == 2 and not any(-1 in side for side in sides):  # noqa: PLR2004  (the two operands)
        shapes = _shapes(sides, axes)
        each = max([value.element_size() for value in values if is_tensor(value)], default=_FLOAT_NBYTES)
        nbytes = prod(shapes[0]) * each if shapes else 0
        if nbytes >= _LEAST_NBYTES:
            return shapes, nbytes
    return None


def _shapes(sides: list[Shape], axes: tuple[int, ...]) -> tuple[Shape, ...]:
    """The table, its operands and what is left of it; nothing unless the table is many times larger than the others."""
    made = together(*sides)
    table = made.shape if type(made) is Sized else ()
    if not all(-len(table) <= axis < len(table) for axis in axes):
        return ()
    gone = {axis % len(table) for axis in axes}
    result = tuple(n for place, n in enumerate(table) if place not in gone)
    large = prod(table) >= _TIMES * max(*map(prod, sides), prod(result))
    return (table, *sides, result) if large else ()


def _reduction(node: ast.AST) -> tuple[str, ast.expr | None, tuple[int, ...]]:
    """The name of a reduction, what it is called on, and the axes that it adds up."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCES:
        return "", None, ()
    owner, given = node.func.value, list(node.args)
    if dotted(owner) in {"torch", "torch.linalg"} and given:
        owner = given.pop(0)
    named = [one.value for one in node.keywords if one.arg in {"dim", "axis"}]
    wanted = named or (given[-1:] if node.func.attr != "norm" or len(given) > 1 else [])
    return node.func.attr, owner, _axes(wanted[0]) if wanted else ()


def _axes(node: ast.expr) -> tuple[int, ...]:
    """Axes as written, one or several; none if any of them is not known."""
    numbers = [_number(one) for one in (node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node])]
    known = tuple(one for one in numbers if one is not None)
    return known if len(known) == len(numbers) else ()


def _number(node: ast.expr) -> int | None:
    sign, part = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    value = part.value if isinstance(part, ast.Constant) else None
    return sign * value if type(value) is int else None


def _meetings(scope: Scope, node: ast.expr, whole: ast.AST) -> Iterator[tuple[ast.BinOp, Scope, bool]]:
    """Operations of two operands below operations on each element, the outer first, with the scope of each.

    And whether it stands there alone: a product by itself, a difference without weights.
    """
    touched = weighted = False
    for _ in range(_WAY):
        inner = _below(node)
        touched = touched or inner is not None
        if inner is None and isinstance(meeting := _as_operation(node), ast.BinOp) and type(meeting.op) in _MEETS:
            yield meeting, scope, not weighted and not (touched and isinstance(meeting.op, ast.Mult))
            inner, weighted = _weighted(meeting), True
        if inner is None and isinstance(node, ast.Name):
            given = scope.given(node.id) if _is_read_there(scope, node.id, whole) else []
            inner, scope = given[0] if len(given) == 1 else (None, scope)
        if inner is None:
            return
        node = inner


def _weighted(node: ast.BinOp) -> ast.expr | None:
    """`tanh(a + b)` in `tanh(a + b) * w`: what each element is multiplied with may be no part of the table."""
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(other, (ast.Name, ast.Constant)) and (_below(side) or isinstance(_as_operation(side), ast.BinOp)):
            return side
    return None


def _as_operation(node: ast.expr) -> ast.expr:
    """`a * b` for `torch.mul(a, b)` and `a.mul(b)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return node
    sign = _SIGNS.get(node.func.attr)
    sides = node.args if dotted(node.func.value) == "torch" else [node.func.value, *node.args]
    return ast.BinOp(sides[0], sign(), sides[1]) if sign is not None and len(sides) == 2 else node  # noqa: PLR2004


def _is_read_there(scope: Scope, name: str, whole: ast.AST) -> bool:
    """False for a table that other expressions use as well."""
    return _reads(syntax.own_expressions(scope.node), name) == _reads(syntax.walk(whole), name)


def _reads(nodes: Iterable[ast.AST], name: str) -> int:
    return sum(type(n) is ast.Name and n.id == name and type(n.ctx) is ast.Load for n in nodes)


def _below(node: ast.expr) -> ast.expr | None:
    """`x` in `x ** 2`, `x * x`, `-x`, `x.abs()` and `torch.abs(x)`."""
    if isinstance(node, ast.BinOp):
        squared = isinstance(node.op, ast.Mult) and ast.unparse(node.left) == ast.unparse(node.right)
        return node.left if squared or isinstance(node.op, ast.Pow) else None
    if isinstance(node, ast.UnaryOp):
        return node.operand
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ELEMENTWISE:
        of_torch = dotted(node.func.value) == "torch" and node.args
        return node.args[0] if of_torch else node.func.value
    return None
