"""A softmax whose axis nobody named, or that runs along the samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_a
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.shapes import Unknown, shape_of
from torch_inspector.observe.source import dotted

# Numbers that are added up, and how near to 1 a sum of probabilities is.
_NUMBERS, _CLOSE = 1_000_000, 1e-3
_WITHOUT = {"softmax": nn.Softmax, "log_softmax": nn.LogSoftmax, "softmin": nn.Softmin}


def unnamed(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A call of `F.softmax(x)`, or a layer `nn.Softmax()`, without `dim`."""
    if not isinstance(node, ast.Call) or any(one.arg in {"dim", None} for one in node.keywords):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in {"softmax", "log_softmax", "softmin", "Softmax", "LogSoftmax", "Softmin"}:
        return
    callee = scope.names.value(node.func)
    kind = next((k for k, layer in _WITHOUT.items() if callee is getattr(functional, k) or callee is layer), "")
    layer = callee is _WITHOUT.get(kind)
    if kind and len(node.args) == (0 if layer else 1):
        value = scope.names.value(node.args[0]) if node.args else None
        shape = None if value is None or type(value) is Unknown else shape_of(value)
        names = () if layer else (ast.unparse(node.args[0]),)
        yield scope.fact("unnamed-axis", node, statement, names=names, shapes=(shape,) if shape else (), detail=kind)


def over_batch(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`p.argmax(1)` or `p.max(1)` of what a softmax along the samples has made."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or _axis(node) not in {1, -1}:
        return
    source = node.func.value
    if isinstance(source, ast.Name) and source.id == "torch":
        source = node.args[0] if node.args else source
    made = scope.names.value(source)
    shape = shape_of(made)
    if shape is None or len(shape) != 2 or min(shape) < 2 or node.func.attr not in {"argmax", "max", "topk"}:  # noqa: PLR2004
        return
    texts = [source] if isinstance(source, ast.Call) else [v for v, _ in scope.given(getattr(source, "id", ""))]
    if not texts or not _from_module(scope, texts[-1]):
        return
    if _softmax_axis(texts[-1]) == 0:
        yield scope.fact("over-batch", node, statement, names=(ast.unparse(source),), shapes=(shape,))
    elif (
        isinstance(texts[-1], ast.Call)
        and shape[0] != shape[1]
        and (_sums_down(made) or _ends_in_softmax(scope, texts[-1]))
    ):
        name = _called_in(texts[-1])
        yield scope.fact("over-batch", node, statement, names=(name,), shapes=(shape,), detail="inside")


def _called_in(call: ast.Call) -> str:
    """`net` of `net(x).exp()`."""
    while isinstance(call.func, ast.Attribute) and not call.args and isinstance(call.func.value, ast.Call):
        call = call.func.value
    return ast.unparse(call.func)


def _sums_down(made: Any) -> bool:
    """True for numbers in memory of which each column sums to 1, and not each row."""
    if type(made) is not torch.Tensor or made.device.type != "cpu" or not made.is_floating_point():
        return False
    if made.numel() > _NUMBERS:
        return False
    values = made.detach().double()
    values = values if bool((values >= 0).all()) else values.exp()
    columns, rows = ((values.sum(axis) - 1).abs().max() for axis in (0, 1))
    return bool(columns < _CLOSE) and bool(rows > 10 * _CLOSE)


def _ends_in_softmax(scope: Scope, call: ast.Call) -> bool:
    """True for a call of layers in a row of which the last is a softmax along dim 0."""
    layers = fields_of(scope.names.value(call.func)).get("_modules")
    if type(scope.names.value(call.func)) is not nn.Sequential or not layers:
        return False
    last = next(reversed(layers.values()))
    return type(last) in (nn.Softmax, nn.LogSoftmax) and fields_of(last).get("dim") == 0


def _softmax_axis(node: ast.expr) -> int | None:
    """The axis of `softmax(x, 0)`, `x.softmax(0)` and `nn.Softmax(0)(x)`; None for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Call):
        return _axis(func) if dotted(func.func).rpartition(".")[2] in {"Softmax", "LogSoftmax"} else None
    name = func.attr if isinstance(func, ast.Attribute) else ""
    return _axis(node) if name in {"softmax", "log_softmax"} else None


def _axis(node: ast.expr) -> int | None:
    """The axis that a call names, as `dim=` or as its last number."""
    if not isinstance(node, ast.Call):
        return None
    named = [one.value for one in node.keywords if one.arg in {"dim", "axis"}]
    last = next(iter(named or node.args[-1:]), None)
    sign = -1 if isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.USub) else 1
    value = getattr(last.operand if isinstance(last, ast.UnaryOp) else last, "value", None)
    return sign * value if type(value) is int else None


def _from_module(scope: Scope, softmax: ast.expr) -> bool:
    """True if the softmax is of what a module gave back: its rows are samples."""
    made = scope.reading.made
    names = {name for _, _, name in made}
    for node in syntax.walk(softmax):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            return True
        given = [v for v, _ in scope.given(node.id)] if isinstance(node, ast.Name) else []
        if any(isinstance(v, ast.Call) and ast.unparse(v.func) in names for v in given):
            return True
        if any(_is_of_layers(scope, v) for v in given):
            return True
    return False


def _is_of_layers(scope: Scope, value: ast.expr) -> bool:
    """True for what a module with weights gave back, in an earlier cell too: `net(x)`, `net(x).detach()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        value = value.func.value
    module = scope.names.value(value.func) if isinstance(value, ast.Call) else None
    return is_a(module, nn.Module) and next(walk_parameters(module), None) is not None
