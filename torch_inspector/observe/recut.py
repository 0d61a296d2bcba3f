"""The sizes that a tensor had before a view brought them into another order, where both are still there to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_inspector.observe import as_torch
from torch_inspector.observe.shapes import is_array, shape_of

if TYPE_CHECKING:
    import torch

    from torch_inspector.facts import Shape

# Two axes may have sizes that fit by chance; with three it takes a permutation.
AXES = 3


def is_shuffled(before: Shape, after: Shape, axes: int = AXES) -> bool:
    """True if the sizes are the same in another order, axes of size 1 left out: their place does not matter."""
    one, two = [n for n in before if n != 1], [n for n in after if n != 1]
    return len(one) == len(two) >= axes and one != two and sorted(one) == sorted(two)


def sizes_before(view: torch.Tensor) -> Shape | None:
    """Sizes of what it is a view of, if it has the same in another order; None for all else.

    A part of a larger tensor counts like the whole: the number of samples is its own. The first and the last axis must
    be others than before: where one of them stays, the axes beside it may have been cut anew, as features into heads.
    """
    base = as_torch.base(view)
    if base is None or not (as_torch.is_contiguous(view) and as_torch.is_contiguous(base)):
        return None
    return _moved(shape_of(base) or (), shape_of(view) or ())


def array_sizes_before(array: Any) -> Shape | None:
    """The same of an array of NumPy's own class."""
    base = array.base
    if not is_array(base) or not (array.flags.c_contiguous and base.flags.c_contiguous):
        return None
    return _moved(tuple(base.shape), tuple(array.shape))


def _moved(before: Shape, after: Shape) -> Shape | None:
    if len(before) != len(after) or len(after) <= AXES:
        return None
    elsewhere = before[1] != after[1] and before[-1] != after[-1]
    return (after[0], *before[1:]) if elsewhere and is_shuffled(before[1:], after[1:]) else None
