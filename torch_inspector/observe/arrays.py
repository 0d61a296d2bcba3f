"""Arrays of small whole numbers that tensors are made of, and their parts, as far as the text names them plainly."""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch

from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import is_array

_SMALL = frozenset(["uint8", "int8", "int16"])
# Functions of torch that make a tensor with the numbers of an array, and those of NumPy that hand an array on.
_OF_TORCH = frozenset(["from_numpy", "tensor", "as_tensor", "asarray"])
_OF_NUMPY = frozenset(["array", "asarray", "ascontiguousarray", "copy"])
# As many as are worked with.
_LARGEST = 1 << 20


def copied(names: Names, call: ast.expr) -> ast.expr | None:
    """What `torch.from_numpy(a)`, `torch.tensor(a)` or `np.array(a)` is given; None for anything else."""
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(func, ast.Attribute) or len(call.args) != 1:
        return None
    kinds = _OF_TORCH if names.value(func.value) is torch else _OF_NUMPY if _is_numpy(names, func.value) else ()
    return call.args[0] if func.attr in kinds and all(one.arg == "dtype" for one in call.keywords) else None


def taken_over(names: Names, call: ast.expr, array: Any, otherwise: Any) -> Any:
    """What such a call gave back, looked at anew; something else where its numbers may be of another kind."""
    func = call.func if isinstance(call, ast.Call) else None
    asked = [names.value(one.value) for one in call.keywords] if isinstance(call, ast.Call) else []
    plain = type(array) is torch.Tensor or (is_small(array) and array.size <= _LARGEST)
    if not plain or not isinstance(func, ast.Attribute):
        return otherwise
    if not _is_numpy(names, func.value):
        array = _as_tensor(array)
        return array if all(one is getattr(array, "dtype", None) for one in asked) else otherwise
    return array if not asked and is_array(array) else otherwise


def is_small(value: Any) -> bool:
    """True for arrays of NumPy's own class that hold whole numbers of 8 or 16 bits."""
    return is_array(value) and value.dtype.name in _SMALL


def as_tensors(values: list[Any]) -> list[Any]:
    """Copies of small arrays, where NumPy keeps what it makes of them in their own kind; else what was given.

    To `array - 300` it gives a wider kind, or an error: it depends on the release.
    """
    arrays = [one for one in values if is_small(one)]
    if not arrays or any(not is_small(one) and type(one) is not int for one in values):
        return values
    numpy: Any = sys.modules.get("numpy")
    try:
        kept = numpy.result_type(*values) == arrays[0].dtype
    except (OverflowError, TypeError):
        return values
    small = kept and sum(one.size for one in arrays) <= _LARGEST
    return [_as_tensor(one) if is_small(one) else one for one in values] if small else values


def part_of(array: Any, index: tuple[Any, ...], otherwise: Any) -> Any:
    """A view of the part of an array; something else where that is one number, or is not there any more."""
    try:
        part = array[index]
    except (IndexError, ValueError):
        return otherwise
    return part if is_array(part) else otherwise


def _as_tensor(array: Any) -> Any:
    if type(array) is torch.Tensor:
        return array
    try:
        # A copy: torch warns of a tensor that shares the memory of an array which cannot be written.
        return torch.tensor(array)
    except (TypeError, ValueError):  # an order of bytes that torch does not take
        return None


def _is_numpy(names: Names, owner: ast.expr) -> bool:
    return names.value(owner) is sys.modules.get("numpy", names)
