"""Rows that a loop gets from a loader of tensors, where its batches are gone and the tensors are still there."""

from __future__ import annotations

import ast
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset, default_collate

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.reached import is_reached
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in

_LEAVES = (ast.Break, ast.Return, ast.Continue)


def batch_rows(scope: Scope, name: str, statement: ast.stmt, most: int) -> torch.Tensor | None:
    """Rows that a variable of a loop around a statement stood for there, in one turn or another; None if not known.

    Args:
        scope: Of the loop.
        name: Of the variable.
        statement: Directly in the loop, which goes to the end of its loader.
        most: Numbers that are worked with.
    """
    loops = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.For) and statement in one.body)
    loop = next(loops, None)
    if loop is None or not is_reached(scope.node, statement, statement, scope.names.value):
        return None
    if any(isinstance(one, _LEAVES) for one in syntax.own_expressions(loop)) or _is_changed(
        scope, loop, name, statement
    ):
        return None
    target, source = _head(loop)
    places = [place for place, one in enumerate(getattr(target, "elts", ())) if dotted(one) == name]
    tensors = _tensors(scope.names.value(source)) if len(places) == 1 else ()
    rows = tensors[places[0]] if len(tensors) == len(getattr(target, "elts", ())) > 0 else None
    if type(rows) is not torch.Tensor or not rows.dim() or not rows.numel() or _is_touched(scope, rows):
        return None
    return rows[: max(most * rows.shape[0] // rows.numel(), 1)]


def _is_changed(scope: Scope, loop: ast.For, name: str, statement: ast.stmt) -> bool:
    """True if the loop does anything to the variable before the statement, but read it."""
    lines = stores_in(scope.node).get(name, ())
    if any(loop.lineno < line < statement.lineno for line in lines) or lines.count(loop.lineno) != 1:
        return True
    before = [one for one in loop.body if one.lineno < statement.lineno]
    parts = [part for one in before for part in syntax.walk(one)]
    return any(isinstance(one, (ast.Subscript, ast.Attribute)) and _writes(one, name) for one in parts)


def _writes(node: ast.Subscript | ast.Attribute, name: str) -> bool:
    """True for `name[…] = `, and for methods like `name.clamp_`."""
    method = isinstance(node, ast.Attribute) and node.attr.endswith("_")
    return (method or not isinstance(node.ctx, ast.Load)) and dotted(node.value) == name


def _is_touched(scope: Scope, rows: torch.Tensor) -> bool:
    """True if the cell may have changed what the loader reads: it has a name that is written to."""
    names = [name for name, value in scope.reading.names.items() if value is rows]
    tree = scope.reading.file.tree
    parts = list(syntax.walk(tree)) if tree is not None else []
    written = (one for one in parts if isinstance(one, (ast.Subscript, ast.Attribute)))
    return any(_writes(one, name) for one in written for name in names)


def _head(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """What stands for a batch, and the loader: of `for i, (x, y) in enumerate(tqdm(loader))`."""
    target, source = loop.target, loop.iter
    while isinstance(source, ast.Call) and source.args and dotted(source.func) in {"enumerate", "tqdm"}:
        if dotted(source.func) == "enumerate" and isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[-1]
        source = source.args[0]
    return target, source


def _tensors(loader: Any) -> tuple[Any, ...]:
    """The tensors of a plain loader, which hands on all of their rows as they are."""
    fields = fields_of(loader) if is_a(loader, DataLoader) else {}
    plain = is_one_of(fields.get("sampler"), (RandomSampler, SequentialSampler))
    dataset = fields.get("dataset") if plain and fields.get("collate_fn") is default_collate else None
    tensors = fields_of(dataset).get("tensors") if type(dataset) is TensorDataset else ()
    return tensors if type(tensors) is tuple else ()
