"""A column (N, 1) that meets a row (N,) outside of a loss: each is stretched to the other."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from torch import nn

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.behind_names import values_behind
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import target_of

# What makes a column or a row on purpose.
ON_PURPOSE = frozenset(
    ["unsqueeze", "view", "reshape", "expand", "arange", "linspace", "meshgrid", "outer", "keepdim", "T", "mT", "t",
     "transpose", "permute", "None", "newaxis", "expand_dims", "triu", "tril", "eye", "logspace", "tensor"]
)  # fmt: skip
# What makes a row of a column, or leaves its shape alone.
_FORMS = frozenset(["squeeze", "flatten", "ravel", "detach", "clone", "float", "double", "cpu", "to", "contiguous"])
# What makes a table of two sizes.
_FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "eye"))
_DEPTH = 4
# What reads a table along one axis: who compares one by one has no use for it.
_BY_AXIS = frozenset(
    ["argmin", "argmax", "argsort", "sort", "topk", "kthvalue", "min", "max", "amin", "amax", "median", "softmax",
     "log_softmax", "logsumexp", "cumsum"]
)  # fmt: skip


def crossings(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """Two operands of which one is a column and the other a row of the same length, and neither was made so."""
    sides = _sides(node)
    if len(sides) != 2 or any(type(side) is ast.Constant for side in sides):  # noqa: PLR2004
        return
    values = [scope.names.value(side) for side in sides]
    shapes = [shape_of(value) or () for value in values]
    if not all(map(tensor_or_shape, values)) or sorted(map(len, shapes)) != [1, 2]:
        return
    n = max(map(max, shapes))
    # The length of a batch of a loader is not known: it is that of the other side.
    shapes = [tuple(n if size < 0 else size for size in shape) for shape in shapes]
    if n < 2 or sorted(shapes) != sorted([(n,), (n, 1)]) or any(_meant(scope, side) for side in sides):  # noqa: PLR2004
        return
    if any(_is_own(scope, side) for side in sides) or _is_table(scope, node, statement):
        return
    if _is_ordered(node) or _has_one_origin(scope, sides) or _joins_a_table(scope, node, statement, n):
        return
    method = getattr(getattr(node, "func", None), "attr", "")
    detail = "compared" if type(node) is ast.Compare or method in {"eq", "ne"} else "calculated"
    texts = tuple(ast.unparse(side) for side in sides)
    yield scope.fact("stretched", node, statement, names=texts, shapes=(*shapes, (n, n)), detail=detail)


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"eq", "ne", "sub"}:
        return [node.func.value, *node.args] if len(node.args) == 1 else node.args[:2]
    return []


def _meant(scope: Scope, side: ast.expr) -> bool:
    """True if an operand, or what its name was given, is written as a column, a row or a grid."""
    return any(_says_form(node) for value, _ in values_behind(scope, side, _DEPTH) for node in syntax.walk(value))


def _says_form(node: ast.AST) -> bool:
    word = getattr(node, "attr", getattr(node, "arg", ""))
    return word in ON_PURPOSE or (type(node) is ast.Constant and node.value is None)


def _is_own(scope: Scope, side: ast.expr) -> bool:
    """True for a parameter or a buffer of a module: its length is a number of features, not of samples."""
    value: Any = scope.names.value(side)
    if is_a(value, nn.Parameter):
        return True
    if not isinstance(side, ast.Attribute) or not is_a(owner := scope.names.value(side.value), nn.Module):
        return False
    entries: list[Any] = [fields_of(owner).get(kind) for kind in ("_parameters", "_buffers")]
    return any(is_one_of(one, (dict, OrderedDict)) and side.attr in one for one in entries)


def _is_ordered(node: ast.AST) -> bool:
    """True for `<` and `>`: which of all pairs are in order is asked of columns and rows, which are equal is not."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))


def _has_one_origin(scope: Scope, sides: list[ast.expr]) -> bool:
    """True for a column and the row that was made of it, or for what one model gave for two batches."""
    one, two = (_origins(scope, side) for side in sides)
    return not one.isdisjoint(two)


def _origins(scope: Scope, side: ast.expr) -> set[str]:
    """What an expression was made from, as text, and the model that gave it."""
    found = set[str]()
    for value, where in values_behind(scope, side, _DEPTH, _own_name):
        bare = _bare(value)
        found.add(ast.unparse(bare))
        if isinstance(bare, ast.Call) and is_a(where.names.value(bare.func), nn.Module):
            found.add(f"{ast.unparse(bare.func)}()")
    return found


def _bare(side: ast.AST) -> ast.AST:
    while isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr in _FORMS:
        side = side.func.value
    return side


def _own_name(side: ast.AST) -> tuple[str, ...]:
    """The name that an expression is, in one form or another."""
    bare = _bare(side)
    return (bare.id,) if isinstance(bare, ast.Name) else ()


def _joins_a_table(scope: Scope, node: ast.AST, statement: ast.stmt, n: int) -> bool:
    """True if the result goes into a table of the same size, in this statement."""
    if isinstance(statement, ast.AugAssign) and shape_of(scope.names.value(statement.target)) == (n, n):
        return True
    operations = (one for one in syntax.walk(statement) if isinstance(one, ast.BinOp) and one is not node)
    for one in operations:
        for side, other in ((one.left, one.right), (one.right, one.left)):
            if any(part is node for part in syntax.walk(side)) and _is_square(scope, other, statement, n):
                return True
    return False


def _is_square(scope: Scope, side: ast.expr, statement: ast.stmt, n: int) -> bool:
    """True if an expression was an (n, n) table before its statement gave it another value."""
    parts = [one for one in syntax.walk(side) if isinstance(one, (ast.Name, ast.Call))]
    for one in parts:
        if isinstance(one, ast.Name) and one.id != target_of(statement):
            if shape_of(scope.names.value(one)) == (n, n):
                return True
        elif isinstance(one, ast.Name):
            if any(_makes_square(where, value, n) for value, where in scope.given(one.id)):
                return True
        elif _makes_square(scope, one, n):
            return True
    return False


def _makes_square(scope: Scope, value: ast.expr, n: int) -> bool:
    """True for `torch.zeros(n, n)` and its kin."""
    if not isinstance(value, ast.Call) or dotted(value.func) not in _FACTORIES:
        return False
    first = value.args[0] if value.args else None
    sizes = first.elts if isinstance(first, (ast.Tuple, ast.List)) else value.args
    given = [size.value if isinstance(size, ast.Constant) else scope.names.value(size) for size in sizes]
    if not given or any(type(size) is not int or size != n for size in given):
        return False
    return len(given) == (1 if dotted(value.func) == "torch.eye" else 2)


def _is_table(scope: Scope, node: ast.AST, statement: ast.stmt) -> bool:
    """True if the result is read along an axis, by two numbers, or as a kernel: then all pairs are meant."""
    target = target_of(statement)
    for one in syntax.walk(scope.node):
        if isinstance(one, ast.Subscript):
            pair = isinstance(one.slice, ast.Tuple) and len(one.slice.elts) == 2  # noqa: PLR2004
            if pair and target and dotted(one.value) == target:
                return True
        elif isinstance(one, ast.Call):
            name = one.func.attr if isinstance(one.func, ast.Attribute) else dotted(one.func)
            by_method = isinstance(one.func, ast.Attribute) and dotted(one.func.value) not in ("torch", "F")
            given = [one.func.value] if by_method and isinstance(one.func, ast.Attribute) else one.args[:1]
            others = one.args[0 if by_method else 1 :]
            axis = bool(one.keywords) or (bool(others) and not _is_pair(scope, name, others, node, target))
            reads = (name in _BY_AXIS and axis) or name == "exp"
            if reads and any(_holds(part, node, target) for part in given):
                return True
    return False


def _is_pair(scope: Scope, name: str, others: list[ast.expr], node: ast.AST, target: str) -> bool:
    """True for the smaller or larger of two tensors, number by number: `torch.min(r * a, r.clamp(low, high) * a)`."""
    if name not in {"min", "max"} or len(others) != 1:
        return False
    if any(getattr(one, "attr", "") in ON_PURPOSE for one in syntax.walk(others[0])):
        return False  # a table against its own transpose
    return _holds(others[0], node, target) or tensor_or_shape(scope.names.value(others[0]))


def _holds(expression: ast.expr, node: ast.AST, target: str) -> bool:
    parts = syntax.walk(expression)
    return any(one is node or (target != "" and isinstance(one, ast.Name) and one.id == target) for one in parts)
