"""Whether the numbers of a tensor can be read."""

from __future__ import annotations

import torch

from torch_inspector.observe import as_torch


def is_in_memory(tensor: torch.Tensor) -> bool:
    """True if each element of a tensor on the CPU lies inside its storage, so that it can be read.

    A storage may have been resized to nothing; who reads past its end ends the kernel.
    """
    try:
        if not as_torch.is_cpu(tensor) or as_torch.layout(tensor) is not torch.strided:
            return False
        axes = zip(as_torch.shape(tensor), as_torch.stride(tensor), strict=True)
        reach = sum((size - 1) * step for size, step in axes)
        last = as_torch.storage_offset(tensor) + reach
        there = as_torch.untyped_storage(tensor).nbytes()
        return not as_torch.numel(tensor) or (last + 1) * as_torch.element_size(tensor) <= there
    except Exception:  # noqa: BLE001
        return False
