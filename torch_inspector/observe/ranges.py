"""What the numbers of a tensor are like: how many are not finite, or zero, and the largest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.in_memory import is_in_memory


class Range(NamedTuple):
    """What is in one tensor of numbers with a point."""

    size: int = 0
    """Elements in all."""
    nan: int = 0
    inf: int = 0
    low: int = 0
    zeros: int = 0
    extreme: float = 0.0

    def bad(self, name: str) -> bool:
        """True if something is not finite; minus infinity stands for "never", except as a logarithm of zero."""
        return bool(self.nan or self.inf or (self.low and name in ("log", "log2", "log10", "log1p")))


def range_of(tensor: Any) -> Range:
    """What is in a tensor; nothing of one that is not on the CPU, or of whole numbers."""
    if not is_in_memory(tensor) or not tensor.is_floating_point():
        return Range()
    if not tensor.numel():
        return Range()
    zeros = int((tensor == 0).sum())
    finite = tensor[tensor.isfinite()]
    extreme = float(finite.abs().max()) if finite.numel() else 0.0
    if finite.numel() == tensor.numel():
        return Range(tensor.numel(), zeros=zeros, extreme=extreme)
    counts = int(tensor.isnan().sum()), int((tensor == math.inf).sum()), int((tensor == -math.inf).sum())
    return Range(tensor.numel(), *counts, zeros, extreme)


def tensors_in(things: Any) -> Iterator[Any]:
    """All tensors in arguments or results of an operation."""
    if kinds.is_a(things, torch.Tensor):
        yield things
    elif kinds.is_a(things, dict):
        for one in dict.values(things):
            yield from tensors_in(one)
    elif kinds.is_a(things, list) or kinds.is_a(things, tuple):
        for one in things:
            yield from tensors_in(one)
