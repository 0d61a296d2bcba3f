"""What the loss of a training loop compares with, and whether the order of the samples means something to the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn import functional

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.source import dotted

_FUNCTIONS = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
_LAYERS = (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss)
# Layers to which neighbours in a batch may be steps of one sequence.
_SEQUENCES = (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention, nn.Conv1d, nn.Transformer)
_TURNS = frozenset(["t", "T", "mT", "transpose", "swapaxes", "swapdims", "movedim", "permute", "unfold"])
_MODULES = 10_000


def targets_of(scope: Scope, loop: ast.For) -> set[str]:
    """Tensors whose cuts are the targets of a loss over classes: `y` of `F.cross_entropy(net(xb), y[i:i + 32])`."""
    given = dict(_given(loop))
    calls = [one for one in syntax.walk(loop) if isinstance(one, ast.Call) and is_loss(scope, one)]
    targets = [one.args[1] if len(one.args) > 1 else _named(one, "target") for one in calls]
    return {_cut_of(one, given) for one in targets if one is not None} - {""}


def keeps_order(scope: Scope, loop: ast.For) -> bool:
    """True if a turn goes on from the one before, rows may be steps of a sequence, or each class has its own model."""
    for node in syntax.walk(loop):
        if isinstance(node, ast.Attribute) and node.attr in _TURNS:
            return True
        if isinstance(node, ast.Call) and (_is_picked(node.func) or _reads_sequences(scope, node.func)):
            return True
        if isinstance(node, ast.Subscript) and _is_none(node.slice):
            return True
        if isinstance(node, ast.Call) and dotted(node.func).endswith("unsqueeze") and _is_zero(node.args[-1:]):
            return True
    return _carries(loop)


def is_loss(scope: Scope, call: ast.Call) -> bool:
    """True for a function or a layer of PyTorch that compares scores with classes."""
    func = call.func
    if isinstance(func, ast.Call):
        return any(scope.names.value(func.func) is one for one in _LAYERS)
    callee = scope.names.value(func)
    return is_one_of(callee, _LAYERS) or any(callee is getattr(functional, one) for one in _FUNCTIONS)


def _named(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _given(loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """What each turn gives a name: `yb` and `y[i:i + 32]`; of a `zip`, the part that it gives."""
    yield from _pairs(loop.target, loop.iter)
    for node in syntax.walk(loop):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    while isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in {"tqdm", "enumerate"} and value.args:
        is_counted = dotted(value.func) == "enumerate" and isinstance(target, ast.Tuple)
        target = target.elts[-1] if is_counted and isinstance(target, ast.Tuple) else target
        value = value.args[0]
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    parts = value.args if isinstance(value, ast.Call) and dotted(value.func) == "zip" else parts
    if isinstance(target, ast.Name):
        # A name that is made from itself, `yb = yb.to(device)`, stays what it was.
        if not any(isinstance(one, ast.Name) and one.id == target.id for one in syntax.walk(value)):
            yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)) and len(parts) == len(target.elts):
        for one, part in zip(target.elts, parts, strict=True):
            yield from _pairs(one, part)


def _cut_of(node: ast.expr, given: dict[str, ast.expr]) -> str:
    """`y` of `yb.float()` where `yb = y[i:i + 32]`, or where the loop goes over `y.split(32)`; else empty."""
    is_cut = False
    for _ in range(20):
        if isinstance(node, ast.Name) and node.id in given:
            node = given[node.id]
        elif isinstance(node, ast.Subscript):
            is_cut, node = is_cut or isinstance(node.slice, ast.Slice), node.value
        elif isinstance(node, ast.Call) and dotted(node.func) == "torch.split" and node.args:
            is_cut, node = True, node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_cut, node = is_cut or node.func.attr == "split", node.func.value
        else:
            break
    return node.id if is_cut and isinstance(node, ast.Name) else ""


def _carries(loop: ast.For) -> bool:
    """True if a turn reads what the turn before has made: `h = rnn(xb, h)`, `net.h = net.h.detach()`."""
    first = {one.id: True for one in syntax.walk(loop.target) if isinstance(one, ast.Name)}
    stored: set[str] = set()
    for statement in _statements(loop.body):
        parts = [one for one in _own(statement) if isinstance(one, (ast.Name, ast.Attribute))]
        for part in sorted(parts, key=lambda one: isinstance(one.ctx, ast.Store)):
            text, is_store = ast.unparse(part), isinstance(part.ctx, ast.Store)
            first.setdefault(text, is_store)
            if is_store and not isinstance(statement, ast.AugAssign):
                stored.add(text)
    return any(not first[one] for one in stored)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in the order of the text, those within others too."""
    for one in body:
        yield one
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(one, name, None)
            yield from _statements(inner) if isinstance(inner, list) else ()


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements within."""
    for child in syntax.children(statement):
        if not isinstance(child, ast.stmt):
            own = set(_comprehended(child))
            yield from (one for one in syntax.walk(child) if getattr(one, "id", "") not in own)


def _comprehended(node: ast.AST) -> Iterator[str]:
    """Variables of comprehensions, which no turn of the loop hands on."""
    for one in syntax.walk(node):
        if isinstance(one, ast.comprehension):
            yield from (part.id for part in syntax.walk(one.target) if isinstance(part, ast.Name))


def _is_picked(func: ast.expr) -> bool:
    """True for `opts[c].step()` and `heads[c](xb)`: each class may have its own."""
    if isinstance(func, ast.Attribute) and func.attr in {"step", "zero_grad"}:
        func = func.value
    return isinstance(func, ast.Subscript) and not isinstance(func.slice, ast.Constant)


def _reads_sequences(scope: Scope, func: ast.expr) -> bool:
    """True for a model with a recurrent layer, an attention or a convolution along one axis in it."""
    waiting: list[Any] = [scope.names.value(func)]
    for count, module in enumerate(waiting):  # grows while it is read
        if count > _MODULES or any(is_a(module, one) for one in _SEQUENCES):
            return True
        if is_a(module, nn.Module):
            waiting.extend((fields_of(module).get("_modules") or {}).values())
    return False


def _is_none(index: ast.expr) -> bool:
    """True for `x[None]` and `x[None, :]`, which make the samples one."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return isinstance(first, ast.Constant) and first.value is None


def _is_zero(numbers: list[ast.expr]) -> bool:
    return any(isinstance(one, ast.Constant) and one.value == 0 for one in numbers)
