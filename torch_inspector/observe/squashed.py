"""A loss of raw scores that the text gives probabilities, where no graph may tell: in an evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.shapes import Unknown
from torch_inspector.observe.statements import given_in, stores_in

_LOSSES: tuple[tuple[str, Any, type[nn.Module], str], ...] = (
    ("cross_entropy", functional.cross_entropy, nn.CrossEntropyLoss, "softmax"),
    ("nll_loss", functional.nll_loss, nn.NLLLoss, "softmax"),
    ("binary_cross_entropy_with_logits", functional.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss, "sigmoid"),
)
_SQUASHES: dict[str, tuple[tuple[Any, ...], type[nn.Module]]] = {
    "softmax": ((functional.softmax, torch.softmax, torch.special.softmax), nn.Softmax),
    "sigmoid": ((functional.sigmoid, torch.sigmoid, torch.special.expit), nn.Sigmoid),
}
_LAYERS = frozenset([*(kind for _, _, kind, _ in _LOSSES), *(kind for _, kind in _SQUASHES.values())])
# Numbers that are read of a tensor that an earlier cell made.
_NUMBERS = 1_000_000
_CLASS_AXES = (1, -1)
_BLOCKS = ("body", "orelse", "finalbody")


def squashed(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`F.cross_entropy(p, y)` where `p` is `F.softmax(scores, dim=1)`, written there or in a line before."""
    if not isinstance(node, ast.Call):
        return
    given = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "input"), None)
    if not isinstance(given, (ast.Call, ast.Name)):
        return
    loss, by = _loss(scope, node)
    made = _made(scope, given, statement) if loss else None
    scores = _scores(scope, made, by) if made is not None else None
    if made is not None and scores is not None and not _is_negated(statement, node):
        names = (ast.unparse(given), ast.unparse(made), ast.unparse(scores))
        yield scope.fact("squashed-loss", node, statement, names=names, detail=loss)


def _loss(scope: Scope, call: ast.Call) -> tuple[str, str]:
    """Name of the loss that is called, and what it must not be given; empty for other calls."""
    callee = _callee(scope, call)
    fits = ((name, by) for name, function, kind, by in _LOSSES if callee is function or callee is kind)
    return next(fits, ("", ""))


def _callee(scope: Scope, call: ast.Call) -> Any:
    """The function of torch that is called, or the class of the layer that is, be it made there or before."""
    if isinstance(call.func, ast.Call):
        return scope.names.value(call.func.func)
    callee = scope.names.value(call.func)
    if type(callee) is Unknown and isinstance(call.func, ast.Name):
        given = scope.given(call.func.id)
        made = given[0][0] if len(given) == 1 else None
        return given[0][1].names.value(made.func) if isinstance(made, ast.Call) else None
    return type(callee) if is_one_of(callee, _LAYERS) else callee if type(callee) is not type else None


def _made(scope: Scope, given: ast.expr, statement: ast.stmt) -> ast.Call | None:
    """The call that made what the loss is given."""
    value = given if isinstance(given, ast.Call) else _value_before(scope.node, given, statement)
    value = value if value is not None else _value_of_earlier_cell(scope, given)
    return value if isinstance(value, ast.Call) else None


def _value_of_earlier_cell(scope: Scope, given: ast.expr) -> ast.expr | None:
    """What an earlier cell gave a variable, the only time, where its numbers agree."""
    name = given.id if isinstance(given, ast.Name) else ""
    if scope.function or not name or name in stores_in(scope.node) or _is_written(scope.node, name):
        return None
    values = scope.given(name)
    agrees = len(values) == 1 and _are_shares(scope.names.value(given))
    return values[0][0] if agrees else None


def _are_shares(value: Any) -> bool:
    """True for a tensor in memory all of whose numbers are from 0 to 1, and are not only these two."""
    if not is_a(value, torch.Tensor) or not is_in_memory(value) or not value.is_floating_point():
        return False
    if not 0 < value.numel() <= _NUMBERS:
        return False
    low, high = value.detach().aminmax()
    return 0 <= float(low) < float(high) <= 1


def _value_before(scope: ast.AST, given: ast.expr, statement: ast.stmt) -> ast.expr | None:
    """What the last line before this one in the same block gave a variable, or the only one anywhere in the scope."""
    name = given.id if isinstance(given, ast.Name) else ""
    if _is_written(scope, name):
        return None
    block = next((one for one in _blocks(scope) if any(part is statement for part in one)), [])
    above = block[: next((i for i, one in enumerate(block) if one is statement), 0)]
    for one in reversed(above):
        if name in _stored(one):
            plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
            return one.value if plain and isinstance(one, ast.Assign) else None
    lines, values = stores_in(scope).get(name, ()), given_in(scope).get(name, ())
    return values[0] if len(lines) == len(values) == 1 and lines[0] < statement.lineno else None


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in (scope, *syntax.own_expressions(scope)):
        for field in _BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _stored(statement: ast.stmt) -> set[str]:
    nodes = syntax.walk(statement)
    return {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}


def _is_written(scope: ast.AST, name: str) -> bool:
    """True if something changes the values behind a variable: `p.log_()`, `p[0] = 1`."""
    for node in syntax.own_expressions(scope):
        of_name = isinstance(getattr(node, "value", None), ast.Name) and node.value.id == name  # type: ignore[attr-defined]
        if of_name and isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return True
        if of_name and isinstance(node, ast.Attribute) and node.attr.endswith("_"):
            return True
    return False


def _scores(scope: Scope, made: ast.Call, by: str) -> ast.expr | None:
    """What the softmax or sigmoid is of; None for other calls, and for a softmax along no axis of classes."""
    functions, kind = _SQUASHES[by]
    callee, method = _callee(scope, made), made.func
    is_call = callee is kind or any(callee is one for one in functions)
    if is_call and made.args:
        return made.args[0] if by == "sigmoid" or _axis(scope, made, kind) in _CLASS_AXES else None
    if is_call or not isinstance(method, ast.Attribute) or method.attr != by:
        return None
    if type(scope.names.value(method.value)) is ModuleType:  # of another library
        return None
    fits = not made.args if by == "sigmoid" else _axis(scope, made, kind) in _CLASS_AXES
    return method.value if fits else None


def _axis(scope: Scope, made: ast.Call, kind: type[nn.Module]) -> int | None:
    """The axis of a softmax, as the call or the layer says it."""
    callee = scope.names.value(made.func)
    if type(callee) is kind:
        dim = fields_of(callee).get("dim")
        return dim if type(dim) is int else None
    call = made.func if isinstance(made.func, ast.Call) else made
    named = [one.value for one in call.keywords if one.arg == "dim"]
    last = next(iter(named or call.args[-1:]), None)
    try:
        axis = ast.literal_eval(last) if last is not None else None
    except (ValueError, TypeError):
        return None
    return axis if type(axis) is int else None


def _is_negated(statement: ast.stmt, node: ast.Call) -> bool:
    """True for `-F.nll_loss(p, y)`, the mean probability of the right class, which somebody may want."""
    signs = (one for one in syntax.walk(statement) if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub))
    return any(one.operand is node for one in signs)
