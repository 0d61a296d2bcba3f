"""A softmax along the samples of scores of which a cross-entropy of the notebook reads classes along the other axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Shape, syntax
from torch_inspector.observe.axes import says_attention, scores_of, softmax_axis, turns
from torch_inspector.observe.classifiers import called, is_classifier
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import shape_of

_ROWS, _TABLE = frozenset([0, -2]), 2
_NORMS = frozenset(["sum", "normalize", "div_", "cumsum"])


def over_samples(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`F.softmax(net(x), dim=0)`, whoever reads it, where `cross_entropy(net(x), y)` tells samples from classes."""
    if not isinstance(node, ast.Call) or softmax_axis(node) not in _ROWS:
        return
    scores = scores_of(node)
    if scores is None or not is_classifier(scope, scores):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    source = target if isinstance(target, ast.Name) else node
    shape = _shape(scope, scores) or shape_of(scope.names.value(source))
    if shape is None or len(shape) != _TABLE or min(shape) < 2 or shape[0] == shape[1]:  # noqa: PLR2004
        return
    if not (turns(scope, node, source) or says_attention(node, source) or _is_normalised(scope, source)):
        names = (source.id,) if isinstance(source, ast.Name) else ()
        yield scope.fact("over-samples", node, statement, names=names, shapes=(shape,))


def _is_normalised(scope: Scope, source: ast.expr) -> bool:
    """True if the text sums a variable up, or normalises it, as for `p / p.sum(1, keepdim=True)`."""
    name = source.id if isinstance(source, ast.Name) else ""
    calls = (one for one in syntax.walk(scope.node) if isinstance(one, ast.Call)) if name else ()
    return any(
        syntax.last_part(call.func) in _NORMS and any(getattr(one, "id", "") == name for one in syntax.walk(call))
        for call in calls
    )


def _shape(scope: Scope, scores: ast.expr) -> Shape | None:
    """The shape of what the model gave back there, or of the variable that holds it."""
    module = called(scores) if isinstance(scores, ast.Call) else None
    if module is None:
        return shape_of(scope.names.value(scores))
    line = int(scores.lineno) + scope.file.offset
    return scope.reading.made.get((scope.file.cell, line, ast.unparse(module)))
