"""A softmax whose axis nobody named, or that runs along the samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn import functional

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.bindings import bindings
from torch_inspector.observe.class_order import is_class_tensor
from torch_inspector.observe.classifiers import is_classifier
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.made_before import made_before
from torch_inspector.observe.only_read import is_only_read
from torch_inspector.observe.shapes import Unknown, shape_of
from torch_inspector.observe.source import dotted

# Labels that are read.
_NUMBERS = 1_000_000
_TURNS = frozenset(["t", "T", "mT", "transpose", "permute", "swapaxes", "matmul", "mm", "bmm", "einsum"])
_WEIGHED = re.compile(r"(?<![a-z])att|attention|weigh|bag|slot|frame|instance|salien|importan")
_START = (0, 0)
_SHARE, _CHOICE = re.compile(r"conf|certain|prob"), re.compile(r"pred|label|class")
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
    """`p.argmax(1)`, `p.max(1)` or `p.topk(k, 1)` of what a softmax along the samples has made, if classes are read.

    Classes are what is compared with labels, is called a prediction with its confidence, or is of scores that a
    cross-entropy of the notebook reads along that axis.
    """
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or syntax.axis_named(node) not in {1, -1}
    ):
        return
    source = node.func.value
    if isinstance(source, ast.Name) and source.id == "torch":
        source = node.args[0] if node.args else source
    made = scope.names.value(source)
    shape = shape_of(made)
    if shape is None or len(shape) != 2 or min(shape) < 2 or node.func.attr not in {"argmax", "max", "topk"}:  # noqa: PLR2004
        return
    softmax, home = _made(scope, source, node)
    if softmax is None or softmax_axis(softmax) not in {0, -2} or not _from_module(home, softmax):
        return
    if shape[0] == shape[1] or turns(scope, softmax, source):
        return
    if _is_scored(scope, node, statement, shape[0]) or (
        not says_attention(softmax, source) and _reads_classes(home, softmax, statement)
    ):
        yield scope.fact("over-batch", node, statement, names=(ast.unparse(source),), shapes=(shape,))


def _made(scope: Scope, source: ast.expr, by: ast.AST) -> tuple[ast.Call | None, Scope]:
    """The call that made a tensor, if nothing has changed it since, and where that stands: here or at a caller's."""
    made = made_before(scope, source, by)
    if made is not None or scope.caller is None or scope.call is None or not isinstance(source, ast.Name):
        return made.call if made is not None else None, scope
    given = scope.arguments.get(source.id)
    changed = bool(bindings(scope.node, source.id)) or not is_only_read(scope, source.id, by, _START)
    return (None, scope) if given is None or changed else _made(scope.caller, given, scope.call)


def _reads_classes(scope: Scope, softmax: ast.expr, statement: ast.stmt) -> bool:
    """True if the words say so, or a cross-entropy reads classes along that axis of the same model's scores."""
    scores = scores_of(softmax)
    return _says_confidence(statement) or (scores is not None and is_classifier(scope, scores))


def scores_of(softmax: ast.expr) -> ast.expr | None:
    """`z` of `F.softmax(z, 0)`, `z.softmax(0)` and `nn.Softmax(0)(z)`."""
    if not isinstance(softmax, ast.Call):
        return None
    made = isinstance(softmax.func, ast.Call) or len(softmax.args) > 1 or bool(softmax.args and softmax.keywords)
    method = softmax.func if isinstance(softmax.func, ast.Attribute) else None
    return softmax.args[0] if made else method.value if method is not None else None


def _says_confidence(statement: ast.stmt) -> bool:
    """True for `confidence, predicted = p.max(1)`: what is read is called the share of a class among all classes."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    names = [dotted(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    return len(names) == 2 and bool(_SHARE.search(names[0]) and _CHOICE.search(names[1]))  # noqa: PLR2004


def says_attention(softmax: ast.expr, source: ast.expr) -> bool:
    """True if the words say that samples are weighed: members of a bag, frames of a clip."""
    return bool(_WEIGHED.search(f"{ast.unparse(softmax)} {ast.unparse(source)}".lower()))


def _is_scored(scope: Scope, read: ast.Call, statement: ast.stmt, samples: int) -> bool:
    """True if what is read is compared with one whole number for each row: the rows are samples, and have classes."""
    bound = statement.targets[0] if isinstance(statement, ast.Assign) else None
    parts = bound.elts[-1:] if isinstance(bound, ast.Tuple) else [bound]
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    for node in syntax.walk(scope.node):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            continue
        for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            is_read = any(part is read or getattr(part, "id", "") in names for part in syntax.walk(one))
            if is_read and _are_classes(scope.names.value(other), samples):
                return True
    return False


def _are_classes(labels: Any, samples: int) -> bool:
    """True for whole numbers, one for each sample."""
    return is_class_tensor(labels, _NUMBERS) and shape_of(labels) == (samples,)


def turns(scope: Scope, softmax: ast.expr, source: ast.expr) -> bool:
    """True if the text turns axes, multiplies matrices, or takes or reads a softmax along others as well."""
    name = ast.unparse(source)
    for node in syntax.walk(scope.node):
        if isinstance(node, ast.Call) and node is not softmax and softmax_axis(node) in {1, -1}:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _TURNS:
            return True
        if (
            isinstance(node, ast.Call)
            and syntax.axis_named(node) in {0, -2}
            and node is not softmax
            and name in ast.unparse(node)
        ):
            return True
    return False


def softmax_axis(node: ast.expr) -> int | None:
    """The axis of `softmax(x, 0)`, `x.softmax(0)` and `nn.Softmax(0)(x)`; None for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Call):
        return syntax.axis_named(func) if dotted(func.func).rpartition(".")[2] in {"Softmax", "LogSoftmax"} else None
    name = func.attr if isinstance(func, ast.Attribute) else ""
    return syntax.axis_named(node) if name in {"softmax", "log_softmax"} else None


def _from_module(scope: Scope, softmax: ast.expr) -> bool:
    """True if the softmax is of what a module gave back for one input: of two, rows and columns may be alike."""
    made = scope.reading.made
    names = {name for _, _, name in made}
    for node in syntax.walk(softmax):
        if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) in names:
            return True
        given = [v for v, _ in scope.given(node.id)] if isinstance(node, ast.Name) else []
        if any(isinstance(v, ast.Call) and len(v.args) == 1 and ast.unparse(v.func) in names for v in given):
            return True
        if any(_is_of_layers(scope, v) for v in given):
            return True
    return False


def _is_of_layers(scope: Scope, value: ast.expr) -> bool:
    """True for what a module with weights gave back, in an earlier cell too: `net(x)`, `net(x).detach()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        value = value.func.value
    module = scope.names.value(value.func) if isinstance(value, ast.Call) and len(value.args) == 1 else None
    return is_a(module, nn.Module) and next(walk_parameters(module), None) is not None
