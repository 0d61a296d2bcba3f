"""Rows that a loop gets from a loader of tensors, where its batches are gone and the tensors are still there."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset, default_collate

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of
from torch_inspector.observe.ran import surely_ran
from torch_inspector.observe.shapes import is_array
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.written import alike, is_written, may_change
from torch_inspector.observe.written_later import is_given_away, trees_around

_LEAVES = (ast.Break, ast.Return, ast.Continue)
_storage_of: Any = torch.Tensor.untyped_storage


class Rows(NamedTuple):
    """Rows of which a loop got all but a few."""

    tensor: torch.Tensor
    left_out: int
    """Rows, whichever they are, that the loader leaves out of its last batch."""
    whole: torch.Tensor
    """The tensor that the loader reads."""
    source: ast.expr
    """The loader, as the loop names it."""


class _Read(NamedTuple):
    """What a plain loader reads, and how many rows it hands on; all of them, but for some by chance."""

    tensors: tuple[Any, ...]
    length: int
    left_out: int


def batch_rows(scope: Scope, name: str, statement: ast.stmt, most: int) -> Rows | None:
    """Rows that a variable of a loop around a statement stood for there, in one turn or another; None if not known.

    Args:
        scope: Of the loop.
        name: Of the variable.
        statement: Directly in the loop, which goes to the end of its loader.
        most: Numbers that are worked with.
    """
    loops = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.For) and statement in one.body)
    loop = next(loops, None)
    if loop is None or any(isinstance(one, _LEAVES) for one in syntax.own_expressions(loop)):
        return None
    target, source = _head(loop)
    places = [place for place, one in enumerate(getattr(target, "elts", ())) if dotted(one) == name]
    read = _read_by(scope.names.value(source)) if len(places) == 1 else None
    if read is None or len(read.tensors) != len(getattr(target, "elts", ())):
        return None
    rows = read.tensors[places[0]]
    if type(rows) is not torch.Tensor or not rows.dim() or not rows.numel():
        return None
    if (
        not surely_ran(scope, statement, statement)
        or _is_changed(scope, loop, name, statement)
        or _is_touched(scope, rows)
    ):
        return None
    tensor = rows[: min(max(most * rows.shape[0] // rows.numel(), 1), read.length)]
    return Rows(tensor, read.left_out, rows, source)


def _is_changed(scope: Scope, loop: ast.For, name: str, statement: ast.stmt) -> bool:
    """True if the loop does anything to the variable before the statement, but read it."""
    lines = stores_in(scope.node).get(name, ())
    if any(loop.lineno < line < statement.lineno for line in lines) or lines.count(loop.lineno) != 1:
        return True
    names = alike(loop, frozenset([name]))
    before = [part for one in loop.body if one.lineno < statement.lineno for part in syntax.walk(one)]
    return any(may_change(part, names) for part in before)


def _is_touched(scope: Scope, rows: torch.Tensor) -> bool:
    """True if the cell may have changed what the loader reads, by any name of its memory."""
    tree = scope.reading.file.tree
    names = frozenset(name for name, value in scope.reading.names.items() if _shows(value, rows)) | {"tensors"}
    if tree is None:
        return True
    names, parts = alike(tree, names), list(syntax.walk(tree))
    called = {dotted(one.func).rpartition(".")[2] for one in parts if isinstance(one, ast.Call)}
    functions = (one for tree in trees_around(scope) for one in syntax.functions_of(tree))
    inside = [part for one in functions if one.name in called for part in syntax.walk(one)]
    written = is_written(parts, names) or is_written(inside, names) or any(map(_replaces, (*parts, *inside)))
    return written or is_given_away(scope, parts, names)


def _replaces(node: ast.AST) -> bool:
    """True for `data.tensors = …`."""
    return isinstance(node, ast.Attribute) and node.attr == "tensors" and not isinstance(node.ctx, ast.Load)


def _shows(value: Any, rows: torch.Tensor) -> bool:
    """True for a tensor of the same memory, and for any array, of which that is not known."""
    if type(value) is not torch.Tensor:
        return is_array(value)
    try:
        return bool(_storage_of(value).data_ptr() == _storage_of(rows).data_ptr())
    except Exception:  # noqa: BLE001  (tensors without memory: meta, sparse)
        return False


def _head(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """What stands for a batch, and the loader: of `for i, (x, y) in enumerate(tqdm(loader))`."""
    target, source = loop.target, loop.iter
    while isinstance(source, ast.Call) and source.args and dotted(source.func) in {"enumerate", "tqdm"}:
        if dotted(source.func) == "enumerate" and isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[-1]
        source = source.args[0]
    return target, source


def _read_by(loader: Any) -> _Read | None:
    """What a plain loader hands on as it is: no other class, no rows picked out, no collating of the user's."""
    fields = fields_of(loader) if type(loader) is DataLoader else {}
    dataset = fields.get("dataset")
    if type(dataset) is not TensorDataset or fields.get("collate_fn") is not default_collate:
        return None
    tensors, batches = fields_of(dataset).get("tensors"), fields.get("batch_sampler")
    if type(tensors) is not tuple or type(batches) is not BatchSampler:
        return None
    own = fields_of(batches)
    sampler, size, drops = own.get("sampler"), own.get("batch_size"), own.get("drop_last")
    if not _takes_all(sampler, dataset) or type(size) is not int or not tensors or type(tensors[0]) is not torch.Tensor:
        return None
    count = tensors[0].shape[0] if tensors[0].dim() else 0
    rest = count % size if drops is True else 0
    chosen = type(sampler) is RandomSampler
    return _Read(tensors, count if chosen else count - rest, rest if chosen else 0)


def _takes_all(sampler: Any, dataset: TensorDataset) -> bool:
    """True for a sampler of torch that takes every row once."""
    own = fields_of(sampler) if type(sampler) is RandomSampler or type(sampler) is SequentialSampler else {}
    if own.get("data_source") is not dataset:
        return False
    return type(sampler) is SequentialSampler or (own.get("replacement") is False and own.get("_num_samples") is None)
