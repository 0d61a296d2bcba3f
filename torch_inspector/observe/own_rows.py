"""Whether what weights of samples are multiplied with, or added to, differs from sample to sample.

Where it is one row for all of them, as the shares of the topics that make a text of words, nothing is mixed for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import parents_of

_KEPT = {"MulBackward0": ("self", "other"), "BmmBackward0": ("self", "mat2")}
_FAR = 12
# About a millisecond.
_ELEMENTS = 300_000


def has_own_rows(node: Node, place: int, samples: Sequence[int], parts: int) -> bool:
    """True if one of two operands differs from sample to sample, and from part to part: else it is but a scale.

    Args:
        node: A product or a sum of the weights and of what they weigh.
        place: 0 or 1, of the latter.
        samples: The axes of its result along which the samples may lie.
        parts: The one along which the parts do.
    """
    return differs_along(node, place, samples) and differs_along(node, place, [parts])


def differs_along(node: Node, place: int, axes: Sequence[int]) -> bool:
    """True if one of the two operands of an operation is not the same all along some axes of its result.

    Of a product its numbers tell, while it keeps them; of a sum, whether the operand was expanded there.
    """
    rank, names = len(private.output_shape(node) or ()), _KEPT.get(type(node).__name__)
    if names is None:
        parent = parents_of(node)[place]
        return any(not _is_expanded(parent, axis - rank) for axis in axes)
    kept = saved_value(node, names[place])
    known = kinds.is_one_of(kept, (torch.Tensor, torch.nn.Parameter))
    return known and any(_differs(kept, axis - rank) for axis in axes)


def _differs(value: Any, axis: int) -> bool:
    """The same of a tensor, along an axis counted from the end."""
    if as_torch.dim(value) < -axis or as_torch.shape(value)[axis] < 2:  # noqa: PLR2004
        return False
    if not is_in_memory(value) or as_torch.numel(value) > _ELEMENTS:
        return as_torch.stride(value)[axis] != 0
    plain = as_torch.detach(value)
    return not bool((plain == plain.narrow(axis, 0, 1)).all())


def _is_expanded(node: Node | None, axis: int) -> bool:
    """True if an operand was stretched along an axis, counted from the end, or has none there."""
    for _ in range(_FAR):
        shape = private.output_shape(node) if node is not None else None
        if node is None or shape is None:
            return False
        if _is_single(shape, axis):
            return True
        some = [parent for parent in parents_of(node) if parent is not None]
        below = private.output_shape(some[0]) if len(some) == 1 else None
        if below is None or (type(node).__name__ != "ExpandBackward0" and below != shape):
            return False
        node = some[0]
    return False


def _is_single(shape: Shape, axis: int) -> bool:
    return len(shape) < -axis or shape[axis] == 1
