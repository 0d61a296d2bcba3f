"""Which part of a joined tensor a loss reads: `out[:, 2:]` of `torch.cat([boxes, chances], 1)` is the second."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import kinds, private
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_values
from torch_inspector.observe.softmax import IN_PLACE

JOINS = frozenset(["CatBackward0", "StackBackward0"])
_SPLITS = frozenset(["SplitBackward0", "SplitWithSizesBackward0"])
# What may leave some of the parts out.
_PICKS = _SPLITS | {"SliceBackward0", "SelectBackward0", "UnbindBackward0", "IndexBackward0", "IndexSelectBackward0"}
_TURNS = frozenset(["TBackward0", "PermuteBackward0", "TransposeBackward0"])


class _Span(NamedTuple):
    """The numbers of a joined tensor that are read: from one to another along its axis, which may be gone by now."""

    axis: int | None
    low: int
    high: int


def part_read(way: list[Node]) -> Node | None:
    """What made the first part that is read; None if that is not sure.

    Args:
        way: The nodes from the loss down to the join, both included.
    """
    parts = [parent for parent, _ in way[-1].next_functions]
    span = _whole(way[-1])
    steps = list(pairwise(way[:-1]))[::-1]
    if not any(type(node).__name__ in _PICKS for _, node in steps):
        return next((one for one in parts if one is not None), None)
    for user, node in steps:
        span = _through(node, user, span) if span is not None else None
    ends = list(accumulate(_sizes(way[-1])))
    read = zip(parts, [0, *ends], ends, strict=False) if span is not None else ()
    return next((one for one, low, high in read if one is not None and _meet(span, low, high)), None)


def _meet(span: _Span | None, low: int, high: int) -> bool:
    return span is not None and low < span.high and span.low < high


def _whole(join: Node) -> _Span | None:
    """All that a join has made."""
    shape = private.output_shape(join)
    if not shape or not _sizes(join):
        return None
    axis = _signed(join._saved_dim) % len(shape)
    return _Span(axis, 0, shape[axis])


def _sizes(join: Node) -> list[int]:
    """How long each part is along the axis; none if that is not known of more than one."""
    shape, count = private.output_shape(join), len(join.next_functions)
    if not shape:
        return []
    if type(join).__name__ == "StackBackward0":
        return [1] * count
    axis = _signed(join._saved_dim) % len(shape)
    given = [private.output_shape(node, n) if node is not None else None for node, n in join.next_functions]
    sizes = [one[axis] if one is not None and len(one) == len(shape) else None for one in given]
    rest = shape[axis] - sum(size for size in sizes if size is not None)
    return [rest if size is None else size for size in sizes] if sizes.count(None) <= 1 else []


def _through(node: Node, user: Node, span: _Span) -> _Span | None:
    """What is read of it past one more operation; None if that is not sure."""
    number = next((n for one, n in user.next_functions if one is node), None)
    parent, at = node.next_functions[0]
    before = private.output_shape(parent, at) if parent is not None else None
    after = private.output_shape(node, number) if number is not None else None
    if before is None or after is None or number is None:
        return None
    if span.axis is None:  # a single number of each row has been picked
        return span
    if type(node).__name__ in _PICKS - {"IndexBackward0", "IndexSelectBackward0"}:
        axis = _signed(node._saved_dim) % len(before)
        return _picked(node, span, (axis, number), before, after)
    if type(node).__name__ in _TURNS:
        return span._replace(axis=_turned(node, span.axis, len(before)))
    if type(node).__name__ in IN_PLACE:
        return span
    return None if _may_reorder(node, span.axis, before, after) else _kept(span, before, after)


def _turned(node: Node, axis: int, count: int) -> int:
    """Where an axis is after all of them have changed places."""
    name = type(node).__name__
    if name == "TBackward0":
        return count - 1 - axis
    if name == "PermuteBackward0":
        return [_signed(one) % count for one in node._saved_dims].index(axis)
    pair = [_signed(one) % count for one in (node._saved_dim0, node._saved_dim1)]
    return pair[1 - pair.index(axis)] if axis in pair else axis


def _may_reorder(node: Node, axis: int, before: Shape, after: Shape) -> bool:
    """True for `out[:, order]`, which leaves all shapes as they are; not for `out[rows]`."""
    if type(node).__name__ == "IndexSelectBackward0":
        return _signed(node._saved_dim) % len(before) == axis
    return type(node).__name__ == "IndexBackward0" and before == after and _indexed(node) in (None, axis)


def _indexed(node: Node) -> int | None:
    """The axis that the one list of indices is on; None if there are several, or that cannot be read."""
    given = [one for one, _ in saved_values(node)]
    lists = [axis for axis, one in enumerate(given) if one is not None]
    alone = len(lists) == 1 and kinds.is_one_of(given[lists[0]], (torch.Tensor,)) and given[lists[0]].ndim == 1
    return lists[0] if alone and lists[0] == len(given) - 1 else None


def _picked(node: Node, span: _Span, at: tuple[int, int], before: Shape, after: Shape) -> _Span | None:
    """The same past a slice, a selection or a split along some axis."""
    (axis, number), name = at, type(node).__name__
    gone = name in {"SelectBackward0", "UnbindBackward0"}
    if axis != span.axis:
        return span._replace(axis=(span.axis or 0) - (gone and axis < (span.axis or 0)))
    if name == "SliceBackward0":
        low = _signed(node._saved_start) % before[axis] if node._saved_step == 1 else -1
    elif name in _SPLITS:
        low = sum((private.output_shape(node, n) or before)[axis] for n in range(number))
    else:
        low = number if name == "UnbindBackward0" else _signed(node._saved_index) % before[axis]
    size = 1 if gone else after[axis]
    return _Span(None if gone else axis, span.low + low, span.low + low + size) if low >= 0 else None


def _kept(span: _Span, before: Shape, after: Shape) -> _Span | None:
    """The same past a view, or rows that were picked, where the axis and all behind it, or before it, stay."""
    behind = len(before) - (span.axis or 0)
    if after[-behind:] == before[-behind:]:
        return span._replace(axis=len(after) - behind)
    front = (span.axis or 0) + 1
    return span if after[:front] == before[:front] else None


def _signed(number: int | None) -> int:
    """A number as it was given, 0 for none; torch hands a negative one on without its sign."""
    whole = int(number or 0)
    return whole - 2**64 if whole >= 2**63 else whole
