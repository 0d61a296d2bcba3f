"""A few values of a tensor, to tell later whether it has changed."""

from __future__ import annotations

import torch

from torch_inspector.observe import private

# Values that are read.
_SAMPLE = 16

Values = tuple[float, ...] | None
"""Some values of a tensor; None where they are not read."""


def some_values(tensor: torch.Tensor) -> Values:
    """A few values of a tensor on the CPU, the same ones each time; None for other tensors. About 8 µs."""
    if not tensor.is_cpu or tensor.layout != torch.strided or not tensor.is_contiguous() or not tensor.numel():
        return None
    # Wrapped by `torch.func` it has no storage of its own, and one that was resized to zero must not be read.
    storage = private.storage_of(tensor)
    if storage is None or storage[1] < tensor.numel() * tensor.element_size():
        return None
    with torch.no_grad():
        flat = tensor.detach().view(-1)
        return tuple(flat[:: flat.numel() // _SAMPLE + 1].tolist())
