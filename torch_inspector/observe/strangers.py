"""Tensors beside copies of rows that look alike and are none: their rows are not among those of the tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import thread_time
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, IndexingFact, TensorFact
from torch_inspector.observe import as_torch
from torch_inspector.observe.handed_copies import HANDED
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.operands import at as at_path

_BUDGET_S = 0.030
# Elements of a row by which rows are told apart first, and rows with the same that are compared as a whole.
_SAMPLE, _MOST = 16, 64
# Rows that are gone through at once: for more, torch would wake its other threads.
_CHUNK = 1 << 14
# Less than so much of a tensor's own memory is not told.
_TIMES = 2


def strangers(
    tensors: Iterable[TensorFact],
    indexings: Iterable[IndexingFact],
    told: Iterable[ExpressionFact],
    names: Mapping[str, Any],
) -> frozenset[tuple[int, int]]:
    """Keys of tensors with those, among what looks like their copies, whose rows are others or cannot be compared.

    Args:
        tensors: All that the user can name.
        indexings: What the text of the cell keeps of them.
        told: Expressions of the cell; those of copies that functions give back name path, index, and who keeps them.
        names: The user's variables.
    """
    targets: dict[str, set[str]] = {}
    for one in indexings:
        targets.setdefault(one.source, set()).add(one.target)
    for fact in (one for one in told if one.kind == HANDED):
        targets.setdefault(fact.names[0], set()).update(fact.names[2:])
    facts = list(tensors) if targets else []
    deadline = thread_time() + _BUDGET_S
    found: set[tuple[int, int]] = set()
    for source in facts:
        alike = list(_alike(source, facts, targets.get(source.path, set())))
        if alike and sum(one.nbytes for one in alike) >= _TIMES * source.nbytes:
            found.update(_strange(source, alike, names, deadline))
    return frozenset(found)


def _alike(source: TensorFact, facts: Iterable[TensorFact], targets: set[str]) -> Iterator[TensorFact]:
    """Tensors below the targets that have rows like a tensor."""
    for one in facts if targets else ():
        root = one.path.partition("[")[0].partition(".")[0]
        same = one.shape[1:] == source.shape[1:] and one.dtype == source.dtype and one.key != source.key
        if same and root in targets and len(one.shape) == len(source.shape) > 0:
            yield one


def _strange(
    source: TensorFact, alike: list[TensorFact], names: Mapping[str, Any], deadline: float
) -> Iterator[tuple[int, int]]:
    whole = _rows_of(source, names)
    for one in alike:
        rows = _rows_of(one, names) if whole is not None and thread_time() < deadline else None
        if whole is None or rows is None or not _are_among(rows, whole, deadline):
            yield source.key, one.key


def _rows_of(fact: TensorFact, names: Mapping[str, Any]) -> torch.Tensor | None:
    """The live tensor, a row each; None where it cannot be read cheaply."""
    value = at_path(names, fact.path)
    if type(value) is not torch.Tensor or id(value) != fact.key or not is_in_memory(value):
        return None
    if not value.numel() or not value.is_contiguous():
        return None
    return as_torch.detach(value).view(len(value), -1)


def _are_among(rows: torch.Tensor, whole: torch.Tensor, deadline: float) -> bool:
    """True if the first row and the last one are rows of the whole; those of a mask are found near its ends."""
    starts = range(0, len(whole), _CHUNK)
    ends = (rows[0], starts), (rows[-1], reversed(starts))
    return all(any(_is_in(row, whole[at : at + _CHUNK], deadline) for at in places) for row, places in ends)


def _is_in(row: torch.Tensor, part: torch.Tensor, deadline: float) -> bool:
    """True for a row of a part, found by a few of its elements."""
    if thread_time() > deadline:
        return False
    first, *others = range(len(row) // 2, len(row), max(len(row) // (2 * _SAMPLE), 1))
    places = (part[:, first] == row[first]).nonzero()[:, 0]
    for column in others[:_SAMPLE]:
        if len(places) <= _MOST:
            break
        places = places[part[places, column] == row[column]]
    return any(torch.equal(part[place], row) for place in places[:_MOST].tolist())
