"""Fields and methods of tensors as torch itself has them, whatever the user's classes override.

What a program has put in the place of `torch.Tensor.item`, to count its calls, does not count ours either. To be used
where no function and no dispatch mode of the user sees it (`private.unseen`), and of tensors only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# The class in C behind `torch.Tensor`: programs change the latter.
_Tensor: Any = torch._C.TensorBase


def _field(name: str) -> Callable[[Any], Any]:
    return getattr(_Tensor, name).__get__  # type: ignore[no-any-return]


base = _field("_base")
data_ptr: Callable[[Any], int] = _Tensor.data_ptr
detach: Callable[[Any], torch.Tensor] = _Tensor.detach
device: Callable[[Any], torch.device] = _field("device")
dim: Callable[[Any], int] = _Tensor.dim
dtype: Callable[[Any], torch.dtype] = _field("dtype")
element_size: Callable[[Any], int] = _Tensor.element_size
grad = _field("grad")
grad_fn = _field("grad_fn")
is_contiguous: Callable[[Any], bool] = _Tensor.is_contiguous
is_cpu: Callable[[Any], bool] = _field("is_cpu")
is_floating_point: Callable[[Any], bool] = _Tensor.is_floating_point
is_inference: Callable[[Any], bool] = _Tensor.is_inference
is_leaf: Callable[[Any], bool] = _field("is_leaf")
is_meta: Callable[[Any], bool] = _field("is_meta")
item: Callable[[Any], Any] = _Tensor.item
layout: Callable[[Any], torch.layout] = _field("layout")
nbytes: Callable[[Any], int] = _field("nbytes")
numel: Callable[[Any], int] = _Tensor.numel
requires_grad: Callable[[Any], bool] = _field("requires_grad")
shape: Callable[[Any], torch.Size] = _field("shape")
storage_offset: Callable[[Any], Any] = _Tensor.storage_offset
stride: Callable[[Any], tuple[int, ...]] = _Tensor.stride
tolist: Callable[[Any], Any] = _Tensor.tolist
untyped_storage: Callable[[Any], torch.UntypedStorage] = _Tensor.untyped_storage
