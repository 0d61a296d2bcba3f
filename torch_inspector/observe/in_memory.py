"""Whether the numbers of a tensor can be read."""

from __future__ import annotations

import torch


def is_in_memory(tensor: torch.Tensor) -> bool:
    """True if each element of a tensor on the CPU lies inside its storage, so that it can be read.

    A storage may have been resized to nothing; who reads past its end ends the kernel.
    """
    try:
        if not tensor.is_cpu or tensor.layout is not torch.strided:
            return False
        reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        last = tensor.storage_offset() + reach
        return not tensor.numel() or (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()
    except Exception:  # noqa: BLE001
        return False
