"""Fields and methods of tensors as torch itself has them: what a class of the user overrides is not asked.

To be used where no function and no dispatch mode of the user sees it (`private.unseen`), and of tensors only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _field(name: str) -> Callable[[Any], Any]:
    return getattr(torch.Tensor, name).__get__  # type: ignore[no-any-return]


base = _field("_base")
data_ptr: Callable[[Any], int] = torch.Tensor.data_ptr
detach: Callable[[Any], torch.Tensor] = torch.Tensor.detach
device: Callable[[Any], torch.device] = _field("device")
dim: Callable[[Any], int] = torch.Tensor.dim
dtype: Callable[[Any], torch.dtype] = _field("dtype")
element_size: Callable[[Any], int] = torch.Tensor.element_size
grad = _field("grad")
grad_fn = _field("grad_fn")
is_contiguous: Callable[[Any], bool] = torch.Tensor.is_contiguous
is_cpu: Callable[[Any], bool] = _field("is_cpu")
is_floating_point: Callable[[Any], bool] = torch.Tensor.is_floating_point
is_inference: Callable[[Any], bool] = torch.Tensor.is_inference
is_leaf: Callable[[Any], bool] = _field("is_leaf")
is_meta: Callable[[Any], bool] = _field("is_meta")
layout: Callable[[Any], torch.layout] = _field("layout")
nbytes: Callable[[Any], int] = _field("nbytes")
numel: Callable[[Any], int] = torch.Tensor.numel
requires_grad: Callable[[Any], bool] = _field("requires_grad")
shape: Callable[[Any], torch.Size] = _field("shape")
storage_offset: Callable[[Any], Any] = torch.Tensor.storage_offset
stride: Callable[[Any], tuple[int, ...]] = torch.Tensor.stride
untyped_storage: Callable[[Any], torch.UntypedStorage] = torch.Tensor.untyped_storage
