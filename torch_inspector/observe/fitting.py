"""Numbers of 8 and 16 bits: which tensors hold them, and which results are too large for them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import torch

from torch_inspector.observe import as_torch
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.shapes import is_tensor, shape_of, stretched_to

SMALL = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-(1 << 15), (1 << 15) - 1)}
# About half a millisecond on a laptop.
LARGEST = 1 << 20
_CUBE = 3
# What works with a number on the left, too.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "pow": operator.pow,
}
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]


def kind_of(value: Any) -> torch.dtype | None:
    """The type of a tensor of small numbers; None for anything else."""
    kind = _dtype_of(value) if is_tensor(value) else None
    return kind if kind in SMALL else None


def fits(value: Any, dtype: torch.dtype) -> bool:
    """True for a whole number, or a tensor of the same kind on the CPU whose elements can be read."""
    if type(value) is int:
        return True
    if type(value) is not torch.Tensor or _dtype_of(value) is not dtype:
        return False
    return is_in_memory(value) and 0 < value.numel() <= LARGEST


def fits_all(value: torch.Tensor, dtype: torch.dtype) -> bool:
    """True if a type of numbers holds all elements of a tensor as they are, but for what follows the point."""
    if dtype not in SMALL:
        return True
    (low, high), exact = SMALL[dtype], value.to(torch.float64)
    return bool(((exact > low - 1) & (exact < high + 1)).all())


def outside_of(operation: str, values: list[Any], dtype: torch.dtype) -> torch.Tensor | None:
    """Where a result lies outside of what the kind can hold, worked out with 32 bits; None where that cannot be."""
    low, high = SMALL[dtype]
    one, two = (value.to(torch.int32) if type(value) is torch.Tensor else value for value in values)
    if operation == "pow" and (type(two) is not int or not 1 < two <= _CUBE):
        return None
    sizes = stretched_to(*(shape_of(value) or () for value in (one, two)))
    if sizes is None or prod(sizes) > LARGEST:
        return None
    try:
        result = OPERATORS[operation](one, two)
        return (result < low) | (result > high)  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001  (shapes that do not fit any more)
        return None


def share_outside(operation: str, values: list[Any], dtype: torch.dtype) -> float:
    """Part of the elements whose result lies outside."""
    outside = outside_of(operation, values, dtype)
    return float(as_torch.item(outside.sum())) / max(int(outside.numel()), 1) if outside is not None else 0.0
