"""Index tensors beside a colon or beside row numbers: `x[:, labels]` and `x[torch.arange(n), 2]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, Shape
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import is_tensor, shape_of

# What makes or names one number for each row.
_PER_ROW = re.compile(r"argm(ax|in)|multinomial|label|\btargets?\b|action|lengths|\blast\b", re.IGNORECASE)
_WHOLE = (torch.int64, torch.int32)


def picks(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A colon with as many column numbers as there are rows, or the numbers of all rows with one column."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return
    rows, column = node.slice.elts[:2]
    shape = shape_of(scope.names.value(node.value))
    if shape is None or len(shape) < 2 or shape[0] < 2:  # noqa: PLR2004
        return
    names = (ast.unparse(node.value), ast.unparse(column))
    if isinstance(rows, ast.Slice):
        detail = _crossed(scope, rows, column, shape)
        result = (shape[0], shape[0], *shape[2:])
    else:
        detail = "colon" if _is_every_row(scope, rows, shape[0]) and _is_number(column) else ""
        result = (shape[0], *shape[2:])
    if detail:
        yield scope.fact("picks", node, statement, names=names, shapes=(shape, result), detail=detail)


def _crossed(scope: Scope, rows: ast.Slice, column: ast.expr, shape: Shape) -> str:
    """`crossed` if the numbers cannot be a choice of columns, `perhaps` if they look like one for each row."""
    # `lengths - 1` is as long as `lengths`.
    moved = isinstance(column, ast.BinOp) and isinstance(column.right, ast.Constant)
    index: Any = scope.names.value(column.left if isinstance(column, ast.BinOp) and moved else column)
    if rows.lower or rows.upper or rows.step or not is_tensor(index) or index.dtype not in _WHOLE:
        return ""
    if shape_of(index) != shape[:1] or shape[0] == shape[1]:
        return ""
    # More numbers than columns: some stand there twice, as no selection of columns has them.
    if shape[0] > shape[1]:
        return "crossed"
    given = scope.given(column.id) if isinstance(column, ast.Name) else []
    texts = (ast.unparse(column), *(ast.unparse(value) for value, _ in given))
    return "perhaps" if any(_PER_ROW.search(text) for text in texts) else ""


def _is_every_row(scope: Scope, rows: ast.expr, count: int) -> bool:
    if not isinstance(rows, ast.Call) or len(rows.args) != 1 or scope.names.value(rows.func) is not torch.arange:
        return False
    end = rows.args[0]
    if isinstance(end, ast.Call) and ast.unparse(end.func) == "len" and len(end.args) == 1:
        return (shape_of(scope.names.value(end.args[0])) or (0,))[0] == count
    value = scope.names.value(end)
    return type(value) is int and value == count


def _is_number(column: ast.expr) -> bool:
    inner = column.operand if isinstance(column, ast.UnaryOp) else column
    return isinstance(inner, ast.Constant) and type(inner.value) is int
