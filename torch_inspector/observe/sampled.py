"""A few values of a tensor, to tell later whether it has changed."""

from __future__ import annotations

from math import nan

import torch

from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.in_memory import is_in_memory

# Values that are read.
_SAMPLE = 16

Values = tuple[float, ...] | None
"""Some values of a tensor; None where they are not read."""


# Numbers of 16 bits that are added up, of all parameters of an optimizer.
_SUMMED = 1 << 20
_COARSE = (torch.bfloat16, torch.float16)


def has_values(tensor: torch.Tensor) -> bool:
    """False for a tensor of `FakeTensorMode`, which has shapes and no numbers."""
    return kinds.class_name(tensor) != "FakeTensor"


def coarse_type(tensors: list[torch.Tensor]) -> str:
    """`bfloat16` or `float16` if plain tensors on the CPU, not too many, are all of that type; else empty."""
    types = {as_torch.dtype(one) for one in tensors}
    plain = all(has_values(one) and is_in_memory(one) and as_torch.is_contiguous(one) for one in tensors)
    few = sum(as_torch.numel(one) for one in tensors) <= _SUMMED
    return str(types.pop()).removeprefix("torch.") if len(types) == 1 and types <= {*_COARSE} and plain and few else ""


def sums_of_bits(tensors: list[torch.Tensor]) -> Values:
    """The bits of each tensor of a coarse type as whole numbers, added up: another sum is another tensor."""
    with torch.no_grad():
        return tuple(float(as_torch.detach(one).view(torch.int16).sum()) for one in tensors)


def some_values(tensor: torch.Tensor) -> Values:
    """A few values of a tensor on the CPU, the same ones each time; None for other tensors. About 8 µs.

    Each nan is one and the same object: then two tuples of them are equal, as the values are that nobody has changed.
    """
    # Wrapped by `torch.func` it has no storage of its own.
    if not has_values(tensor) or not is_in_memory(tensor):
        return None
    if not as_torch.is_contiguous(tensor) or not as_torch.numel(tensor):
        return None
    with torch.no_grad():
        flat = as_torch.detach(tensor).view(-1)
        values = as_torch.tolist(flat[:: flat.numel() // _SAMPLE + 1])
    return tuple(one if one == one else nan for one in values)  # noqa: PLR0124  (false for nan alone)
