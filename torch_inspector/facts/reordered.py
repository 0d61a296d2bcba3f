"""Axes that a view takes from one order to another, by their sizes, and the calls that move them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.place import Shape


def is_cut_between(before: Shape, after: Shape) -> bool:
    """True if a view only splits axes, or only merges neighbours, in each part that both sizes have in common."""
    one, two = ({*accumulate((n for n in shape if n != 1), mul)} for shape in (before, after))
    common = sorted(one & two | {1})
    return all(
        not {n for n in one - two if low < n < high} or not {n for n in two - one if low < n < high}
        for low, high in zip(common, [*common[1:], prod(before) + 1], strict=True)
    )


def is_in_order(order: Sequence[int], shape: Shape) -> bool:
    """True if axes of more than one element stay in their order."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def order_by_sizes(before: Shape, after: Shape) -> list[int]:
    """Where each axis was before, axes of size 1 beside the one in front of them; empty if sizes are not the same.

    One side may have several leading axes where the other has their product. Sizes that are equal stay in their order.
    """
    split = _lead(after, before) if len(after) > len(before) else 1
    after = (prod(after[:split]), *after[split:]) if split > 1 else after
    merged = _lead(before, after)
    if not merged:
        return []
    whole, left = (prod(before[:merged]), *before[merged:]), list(range(len(before) - merged + 1))
    order = list[int]()
    for size in (n for n in after if n != 1):
        axis = next((axis for axis in left if whole[axis] == size), None)
        if axis is None:
            return []
        left.remove(axis)
        order.append(axis)
    order = _with_ones(order, whole)
    return [*_spread(order, merged)] if len(order) == len(whole) else []


def _lead(before: Shape, after: Shape) -> int:
    """How many leading axes of a tensor a view merges; 1 if none, 0 if it does something else."""
    rest = sorted(n for n in after if n != 1)
    for count in range(1, len(before)):
        leads = count == 1 or after[:1] == (prod(before[:count]),)
        if leads and sorted(n for n in (prod(before[:count]), *before[count:]) if n != 1) == rest:
            return count
    return 0


def _with_ones(order: list[int], shape: Shape) -> list[int]:
    """Axes of size 1 stay behind the axis that they follow."""
    found = [axis for axis, n in enumerate(shape) if n == 1 and not any(shape[before] != 1 for before in range(axis))]
    for axis in order:
        found.append(axis)
        follower = axis + 1
        while follower < len(shape) and shape[follower] == 1:
            found.append(follower)
            follower += 1
    return found


def _spread(order: list[int], merged: int) -> list[int]:
    """The same order, of axes before some leading ones were merged."""
    parts = ([*range(merged)] if axis == 0 else [axis + merged - 1] for axis in order)
    return [axis for part in parts for axis in part]


def moved(order: Sequence[int], before: Shape, after: Shape, sizes: Sequence[str]) -> str:
    """The calls that bring axes to an order and then to the sizes, `permute(0, 1, 4, 2, 3).reshape(b * t, c, h, w)`."""
    kept = [axis for axis in order if axis != 0]
    if before[:1] == (1,) and tuple(before[axis] for axis in kept) == after:
        return f"squeeze(0).permute({', '.join(str(axis - 1) for axis in kept)})"
    apart = [at for at, axis in enumerate(order) if at != axis]
    axes = ", ".join(map(str, order))
    turned = f"transpose({apart[0]}, {apart[1]})" if len(apart) == 2 else f"permute({axes})"  # noqa: PLR2004
    same = tuple(before[axis] for axis in order) == after
    return turned if same else f"{turned}.reshape({', '.join(sizes)})"


def of_arrays(calls: str) -> str:
    """The same calls as NumPy names them."""
    return calls.replace("transpose(", "swapaxes(").replace("permute(", "transpose(")
