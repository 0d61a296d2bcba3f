"""Whether the batches of a loader that does not shuffle come class by class.

Only the targets of its first pass are read, on the CPU, and no further than to the first class that comes back: of data
that are not sorted, that is one batch.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import torch
from torch.utils.data import BatchSampler, SequentialSampler

from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.in_memory import is_in_memory

# Smaller batches hold few classes in any order; larger ones take long to read.
LEAST, _MOST = 8, 4096
# Samples of one class in a row, on average.
_IN_A_ROW = 8
_KEYS = ("label", "labels", "target", "targets", "y", "class", "classes")
# Parts of a batch that are looked through.
_PARTS = 16
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool)
_BINARY = (0.0, 1.0)

_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
_shape_of: Any = torch.Tensor.shape.__get__  # type: ignore[attr-defined]


def batch_in_order(loader: Any) -> int:
    """Samples in a batch of a plain loader that gives those of its dataset as they lie; 0 for any other."""
    settings = kinds.fields_of(loader)
    if settings.get("batch_size") is None and type(settings.get("batch_sampler")) is BatchSampler:
        settings = kinds.fields_of(settings["batch_sampler"])
    size, sampler = settings.get("batch_size"), settings.get("sampler")
    known = type(sampler) is SequentialSampler and type(size) is int
    return size if type(size) is int and known and LEAST <= size <= _MOST else 0


class _Runs:
    """The classes that one part of the batches has given so far, as long as none comes back."""

    __slots__ = ("_runs", "_seen", "is_sorted")

    def __init__(self) -> None:
        self._runs: list[list[Any]] = []
        self._seen: set[Any] = set()
        self.is_sorted = True

    def add(self, targets: list[Any]) -> None:
        """Reads those of one more batch."""
        for value, same in groupby(targets):
            count = len(list(same))
            if self._runs and self._runs[-1][0] == value:
                self._runs[-1][1] += count
            elif value in self._seen:
                self.is_sorted = False
            else:
                self._seen.add(value)
                self._runs.append([value, count])
        # Numbers that hardly repeat are no classes: lengths, users, moments.
        count = sum(one for _, one in self._runs)
        self.is_sorted = self.is_sorted and bool(targets) and count >= _IN_A_ROW * (len(self._runs) - 1)

    def fact(self) -> tuple[tuple[int, int], ...]:
        """Each class with its samples, in the order of the loader."""
        return tuple((int(value), count) for value, count in self._runs)


class ClassOrder:
    """The classes that one pass over a loader has given so far, as long as none comes back."""

    __slots__ = ("_columns", "batches", "trained")

    def __init__(self) -> None:
        self._columns: dict[str | int, _Runs] = {}
        """By the part of a batch; the empty name is that of the targets, where what a batch is like tells them."""
        self.batches = 0
        self.trained = 0
        """Batches after which an optimizer took a step."""

    @property
    def is_sorted(self) -> bool:
        """False as soon as a class comes back, or where batches have no classes."""
        return bool(self._columns) or not self.batches

    def add(self, batch: Any) -> None:
        """Reads the targets of one more batch."""
        self.batches += 1
        with private.unseen():
            parts = _columns_of(batch)
        if self.batches == 1:
            self._columns = {key: _Runs() for key in parts}
        for key, runs in self._columns.items():
            runs.add(parts.get(key, []))
        self._columns = {key: runs for key, runs in self._columns.items() if runs.is_sorted}

    def runs(self) -> tuple[tuple[int, int], ...]:
        """Each class with its samples, in the order of the loader; empty if they do not come class by class."""
        return self._columns[""].fact() if "" in self._columns else ()

    def of_parts(self) -> tuple[tuple[str | int, tuple[tuple[int, int], ...]], ...]:
        """The same of whole numbers that may be targets or not: by key, or place, in a batch."""
        return tuple((key, runs.fact()) for key, runs in self._columns.items() if key != "")


def _columns_of(batch: Any) -> dict[str | int, list[Any]]:
    """The classes of a batch; of a dictionary with other keys, or of three parts and more, all that may be classes."""
    parts: list[tuple[str | int, Any]] = []
    if type(batch) is dict:
        parts = [(key, value) for key, value in dict.items(batch) if type(key) is str and key]
    elif kinds.is_one_of(batch, (list, tuple)):
        parts = list(enumerate(batch))
    known = [value for key, value in parts if key in _KEYS or (len(parts), key) == (2, 1)]
    if known or len(parts) > _PARTS:
        targets = next((found for part in reversed(known) if (found := _classes_in(part))), [])
        return {"": targets} if targets else {}
    return {key: found for key, part in parts if (found := _classes_in(part))}


def is_class_tensor(part: Any, most: int) -> bool:
    """True for a tensor in memory that has one whole number, or 0 or 1, for each of at most so many samples."""
    if not _is_column(part, most):
        return False
    if _dtype_of(part) in _WHOLE:
        return True
    flat = as_torch.detach(part).reshape(-1)
    return bool(part.is_floating_point() and ((flat == 0) | (flat == 1)).all())


def _is_column(part: Any, most: int) -> bool:
    if type(part) is not torch.Tensor or not is_in_memory(part):
        return False
    shape = _shape_of(part)
    return len(shape) in (1, 2) and 0 < shape[0] <= most and (len(shape) == 1 or shape[1] == 1)


def _classes_in(part: Any) -> list[Any]:
    if not _is_column(part, _MOST):
        return []
    if _dtype_of(part) in _WHOLE:
        whole: list[Any] = as_torch.tolist(part.reshape(-1))
        return whole
    values = as_torch.tolist(as_torch.detach(part).reshape(-1)) if part.is_floating_point() else []
    return values if all(value in _BINARY for value in values) else []
