"""Tensors made in a way that says something else than it seems: `torch.Tensor(3)`, `torch.cat` of single columns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import is_tensor, shape_of

_KINDS = ("Tensor", "FloatTensor", "LongTensor", "DoubleTensor", "IntTensor", "ByteTensor", "HalfTensor", "BoolTensor")
_JOINS = (torch.cat, torch.concat, torch.concatenate)


def legacy(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A call of one of the old constructors with what it reads as a size, or turns into another kind of number."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in _KINDS or scope.names.value(node.func) is not getattr(torch, name, None):
        return
    whole = ast.unparse(statement)
    # Old layers make their parameters so, and fill them afterwards; a sum that begins at zero is to be floating point.
    if "Parameter" in whole or f"{ast.unparse(node)}." in whole or _is_zero(node.args[0]):
        return
    detail = _reading(node.args[0], scope.names.value(node.args[0]), name)
    if detail:
        yield scope.fact("legacy", node, statement, names=(ast.unparse(node.args[0]), name), detail=detail)


def _reading(text: ast.expr, value: Any, name: str) -> str:
    """`size` for a number, `float` for whole numbers that become floating point; empty for what is kept."""
    if type(value) is int:
        return "size"
    whole = isinstance(text, (ast.List, ast.Tuple)) and _whole(text)
    whole = whole or (type(value) is list and len(value) > 0 and all(type(one) is int for one in value[:100]))
    return "float" if whole and name == "Tensor" else ""


def _is_zero(text: ast.expr) -> bool:
    """True for `[0]`, from which the old tutorials add up losses."""
    return isinstance(text, (ast.List, ast.Tuple)) and [ast.unparse(one) for one in text.elts] == ["0"]


def _whole(text: ast.expr) -> bool:
    """True for a list of whole numbers as written, or of lists of those."""
    if isinstance(text, (ast.List, ast.Tuple)):
        return bool(text.elts) and all(map(_whole, text.elts))
    if isinstance(text, ast.UnaryOp):
        text = text.operand
    return isinstance(text, ast.Constant) and type(text.value) is int


def columns(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`torch.cat([m[:, k] for k in …])`: each part has lost its axis, and the parts come one after the other."""
    if (
        not isinstance(node, ast.Call)
        or not node.args
        or not any(scope.names.value(node.func) is one for one in _JOINS)
    ):
        return
    axes = [*node.args[1:], *(one.value for one in node.keywords if one.arg in {"dim", "axis"})]
    element = _element(node.args[0])
    # Along dim 0 a flat row may be meant.
    if [ast.unparse(axis) for axis in axes] != ["-1"] or element is None or not isinstance(element.slice, ast.Tuple):
        return
    *before, last = element.slice.elts
    shape = shape_of(owner := scope.names.value(element.value))
    slices = all(isinstance(one, ast.Slice) and not (one.lower or one.upper or one.step) for one in before)
    picks = isinstance(last, (ast.Name, ast.Constant)) and getattr(last, "value", 0) is not None
    if shape is not None and is_tensor(owner) and len(shape) == len(before) + 1 == 2 and slices and picks:  # noqa: PLR2004
        text = ast.unparse(element.value)
        yield scope.fact("columns", node, statement, names=(text, ast.unparse(element)), shapes=(shape,))


def _element(parts: ast.expr) -> ast.Subscript | None:
    """The part that a list puts together again and again, all of one tensor."""
    if isinstance(parts, (ast.ListComp, ast.GeneratorExp)):
        return parts.elt if isinstance(parts.elt, ast.Subscript) else None
    elements = parts.elts if isinstance(parts, (ast.List, ast.Tuple)) else []
    indexed = [one for one in elements if isinstance(one, ast.Subscript)]
    same = len({ast.unparse(one.value) for one in indexed}) == 1
    return indexed[0] if same and len(indexed) == len(elements) > 1 else None
