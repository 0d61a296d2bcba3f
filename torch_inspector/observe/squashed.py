"""A loss of raw scores that the text gives probabilities, where no graph may tell: in an evaluation.

Only of straight code: what may not have run, or has several meanings in the cell, is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.bindings import bindings
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.kinds import fields_of, is_a
from torch_inspector.observe.made_before import Made, made_before
from torch_inspector.observe.shapes import Unknown, shape_of
from torch_inspector.observe.shares import are_shares, may_be_shares
from torch_inspector.observe.taken_whole import is_taken_whole
from torch_inspector.observe.torch_callees import torch_callee
from torch_inspector.observe.untested import is_untested

_LOSSES: tuple[tuple[str, Any, type[nn.Module], str], ...] = (
    ("cross_entropy", functional.cross_entropy, nn.CrossEntropyLoss, "softmax"),
    ("nll_loss", functional.nll_loss, nn.NLLLoss, "softmax"),
    ("binary_cross_entropy_with_logits", functional.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss, "sigmoid"),
)
_CALLED = tuple(one for _, function, kind, _ in _LOSSES for one in (function, kind))
_SQUASHES: dict[str, tuple[Any, ...]] = {
    "softmax": (functional.softmax, torch.softmax, torch.special.softmax, nn.Softmax),
    "sigmoid": (functional.sigmoid, torch.sigmoid, torch.special.expit, nn.Sigmoid),
}
# Methods that hand on the tensor, in another form.
_KEEPS = frozenset(["cpu", "detach", "double", "flatten", "float", "reshape", "squeeze", "view"])
_FLAT = 2


def squashed(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`F.cross_entropy(p, y)` where `p` is `F.softmax(scores, dim=1)`, written there or in a line before."""
    given = _given(node)
    if not isinstance(node, ast.Call) or not isinstance(given, (ast.Call, ast.Name)):
        return
    loss, by = _loss(scope, node)
    if not loss or not is_untested(scope, node) or (loss == "nll_loss" and not is_taken_whole(scope, node)):
        return
    made = made_before(scope, given, node)
    scores = _scores(scope, made.call, by) if made is not None else None
    if made is not None and scores is not None and _agrees(scope, given, made, by):
        left = ast.unparse(scores) if made.is_still(scope, scores, node) else ""
        names = (ast.unparse(given), ast.unparse(made.call), left)
        yield scope.fact("squashed-loss", node, statement, names=names, detail=loss)


def _given(node: ast.AST) -> ast.expr | None:
    """What a call is given first."""
    if not isinstance(node, ast.Call):
        return None
    return node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "input"), None)


def _loss(scope: Scope, call: ast.Call) -> tuple[str, str]:
    """Name of the loss that is called, and what it must not be given; empty for other calls."""
    callee = torch_callee(scope, call.func, _CALLED)
    fits = ((name, by) for name, function, kind, by in _LOSSES if callee is function or callee is kind)
    return next(fits, ("", "")) if callee is not None else ("", "")


def _agrees(scope: Scope, given: ast.expr, made: Made, by: str) -> bool:
    """True unless the numbers of the variable are no probabilities; those of an earlier cell must be."""
    if not isinstance(given, ast.Name):
        return True
    value, axis = scope.names.value(given), 1 if by == "softmax" else None
    return are_shares(value, axis) if made.is_earlier else may_be_shares(value, axis)


def _scores(scope: Scope, made: ast.Call, by: str) -> ast.expr | None:
    """What the softmax or sigmoid is of; None for other calls, and for a softmax along no axis of classes."""
    callee, method = torch_callee(scope, made.func, _SQUASHES[by]), made.func
    if callee is None:
        own = isinstance(method, ast.Attribute) and method.attr == by and _is_tensor(scope, method.value)
        given, last = (method.value if isinstance(method, ast.Attribute) else None), made
    else:
        own, given = True, _given(made)
        last = made.func if isinstance(made.func, ast.Call) else made
    if not own or given is None:
        return None
    return given if by == "sigmoid" or _is_of_classes(scope, _axis(scope, made, last), given) else None


def _is_tensor(scope: Scope, owner: ast.expr) -> bool:
    """True for a tensor, and for what a module makes of one."""
    if tensor_or_shape(scope.names.value(owner)):
        return True
    if isinstance(owner, ast.Name):
        made, given = made_before(scope, owner, owner), scope.arguments.get(owner.id)
        of_caller = scope.caller is not None and given is not None and not bindings(scope.node, owner.id)
        return _is_tensor(scope, made.call) if made is not None else of_caller and _is_tensor(scope.caller, given)  # type: ignore[arg-type]
    method = owner.func if isinstance(owner, ast.Call) else None
    if isinstance(method, ast.Attribute) and method.attr in _KEEPS:
        return _is_tensor(scope, method.value)
    layer = method.value if isinstance(method, ast.Subscript) else method  # `model[0](x)`
    return layer is not None and is_a(scope.names.value(layer), nn.Module)


def _is_of_classes(scope: Scope, axis: int | None, scores: ast.expr) -> bool:
    """True for the axis that a loss reads classes along: the second, which is the last of two."""
    value = scope.names.value(scores)
    shape = None if type(value) is Unknown else shape_of(value)
    return axis == 1 or (axis == -1 and (shape is None or len(shape) == _FLAT))


def _axis(scope: Scope, made: ast.Call, said_in: ast.Call) -> int | None:
    """The axis of a softmax, as the call or the layer says it."""
    callee = scope.names.value(made.func)
    if type(callee) is nn.Softmax:
        dim = fields_of(callee).get("dim")
        return dim if type(dim) is int else None
    return syntax.axis_named(said_in)
