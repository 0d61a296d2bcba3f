"""Products of probabilities with a fixed matrix that leave them probabilities: `softmax(sim) @ one_hot_labels`."""

from __future__ import annotations

from typing import NamedTuple

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

PRODUCTS = frozenset(["MmBackward0", "BmmBackward0"])
# About 30 µs.
_LARGEST = 1 << 16
# What rounding leaves of a sum of 1, in half precision too.
_ROUNDING = 2e-3


class Axis(NamedTuple):
    """The axis along which numbers are to sum to 1."""

    size: int | None
    place: int | None = None
    """Counted from the front; None if it is known by its size only."""


def voted(node: Node, axis: Axis) -> tuple[Node, Axis] | None:
    """The operand of a product with a fixed matrix, and the axis along which it has to sum to 1 for the result to.

    None if both have a history, if the matrix is not of that kind, or if sizes do not tell the axes apart.
    """
    left, right = (*[parent for parent, _ in node.next_functions], None)[:2]
    made = private.output_shape(node)
    if (left is None) == (right is None) or made is None:
        return None
    place = _place(made, axis)
    matrix = saved_value(node, "self" if left is None else "mat2")
    if place is None or not _is_readable(matrix):
        return None
    return _operand(left, right, matrix, place - len(made))


def _place(shape: Shape, axis: Axis) -> int | None:
    """The last axis or the one before; None if it may be either."""
    if axis.place is not None:
        return axis.place if axis.place >= len(shape) - 2 else None
    fits = [place for place in (len(shape) - 1, len(shape) - 2) if shape[place] == axis.size]
    return fits[0] if len(fits) == 1 else None


def _is_readable(matrix: object) -> bool:
    if type(matrix) is not torch.Tensor or not matrix.is_cpu or matrix.layout is not torch.strided:
        return False
    storage = private.storage_of(matrix)
    real = torch.is_floating_point(matrix)
    return storage is not None and storage[1] > 0 and real and 0 < matrix.numel() <= _LARGEST


def _operand(left: Node, right: Node, matrix: torch.Tensor, axis: int) -> tuple[Node, Axis] | None:
    """The axis -1 of a result is that of the right operand, -2 that of the left one; the other two are added up."""
    node, own = (left, -2) if left is not None else (right, -1)
    shape = private.output_shape(node)
    # Where the axis is that of the matrix, the other operand's probabilities are those that are added up.
    wanted = axis if axis == own else -3 - own
    if shape is None or len(shape) != matrix.dim() or not _sums_to_one(matrix, -1 if axis == -1 else -2):
        return None
    place = len(shape) + wanted
    return node, Axis(shape[place], place)


def _sums_to_one(matrix: torch.Tensor, axis: int) -> bool:
    given = as_torch.detach(matrix).float()
    low, high = (float(one) for one in given.sum(axis).aminmax())
    return float(given.amin()) >= 0 and abs(low - 1) < _ROUNDING and abs(high - 1) < _ROUNDING
