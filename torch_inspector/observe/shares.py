"""Whether the numbers of a tensor are probabilities."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import as_torch
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import is_one_of

# Numbers that are read, and how far from 1 a sum may be for rounding.
_NUMBERS, _ROUNDED = 1_000_000, 1e-2


def are_shares(value: Any, axis: int | None) -> bool:
    """True for a tensor in memory all of whose numbers are from 0 to 1, and are not only these two.

    Args:
        value: Anything.
        axis: Axis along which they sum to 1; None for a sigmoid.
    """
    if not _can_be_read(value) or not 0 < value.numel() <= _NUMBERS or (axis is not None and value.dim() <= axis):
        return False
    numbers = as_torch.detach(value)
    low, high = numbers.aminmax()
    if not 0 <= float(low) <= float(high) <= 1 or (float(low), float(high)) in ((0, 0), (0, 1), (1, 1)):
        return False
    return axis is None or bool((numbers.double().sum(axis) - 1).abs().max() < _ROUNDED)


def may_be_shares(value: Any, axis: int | None) -> bool:
    """The same, true also for what cannot be read."""
    readable = _can_be_read(value) and value.numel() <= _NUMBERS
    return not readable or not value.numel() or are_shares(value, axis)


def _can_be_read(value: Any) -> bool:
    plain = is_one_of(value, (torch.Tensor, torch.nn.Parameter))
    return plain and is_in_memory(value) and value.is_floating_point()
