"""Loops over a loader whose last batch is small, or that has no batch at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Subset, TensorDataset

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.source import dotted

WRAPPED = frozenset(["enumerate", "tqdm", "list", "iter"])
"""Functions that go through what they are given, in its order."""
# A last batch of at least this part of the others is about as good.
_PART = 4
# And one of at least this part is as good as full.
_NEARLY = 0.9


def remainders(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A `for` over a loader, with the numbers of its samples, of a batch and of what is left for the last one."""
    if not isinstance(node, ast.For):
        return
    source = node.iter
    while isinstance(source, ast.Call) and source.args and dotted(source.func).split(".")[-1] in WRAPPED:
        source = source.args[0]
    loader = scope.names.value(source)
    fields = fields_of(loader) if is_a(loader, DataLoader) else {}
    size, drops = fields.get("batch_size"), fields.get("drop_last")
    count = sample_count(fields.get("dataset"))
    if type(size) is not int or count is None or size < 1 or count < 1:
        return
    last, name = count % size, ast.unparse(source)
    trains = any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in syntax.walk(node))
    detail = "empty" if drops is True and count < size else ""
    if drops is False and trains and count > size and 0 < last < size * _NEARLY:
        detail = "ragged" if last * _PART < size else "uneven"
    if detail:
        yield scope.fact("remainder", source, statement, names=(name,), shapes=((count, size, last),), detail=detail)


def sample_count(dataset: Any) -> int | None:
    """Samples of a dataset that says so without being asked."""
    fields = fields_of(dataset)
    if is_a(dataset, Subset):
        indices: Any = fields.get("indices")
        return len(indices) if is_one_of(indices, (list, tuple, range)) else (shape_of(indices) or (None,))[0]
    tensors = fields.get("tensors") if is_a(dataset, TensorDataset) else None
    shape = shape_of(tensors[0]) if type(tensors) is tuple and tensors else None
    if is_one_of(dataset, (list, tuple, range)):
        return len(dataset)
    return shape[0] if shape else None
