"""Which axis of a softmax becomes the classes that a loss reads, past views and permutations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import IN_PLACE, axis_of, parents_of

SOFTMAXES = frozenset(["SoftmaxBackward0", "LogSoftmaxBackward0"])
_VIEWS = frozenset(["ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0"])
# What keeps every number in its place.
_STAYS = (IN_PLACE | {"LogBackward0", "AddBackward0"}) - {"CopySlices"}
_FAR = 12


class Misread(NamedTuple):
    """A softmax that runs along another axis than the one that is read as classes."""

    softmax: Node
    shape: Shape
    axis: int
    """That it runs along."""
    class_axis: int
    """That is read."""


def misread(reader: Node, axis: int) -> Iterator[tuple[Misread, list[Node]]]:
    """The softmax below a loss that reads classes along an axis of its first input, if it runs along another one.

    With it the way down. Where both axes are of one size, each may be the classes, as of texts and images.
    """
    yield from misread_from(parents_of(reader)[0], axis)


def misread_from(node: Node | None, axis: int) -> Iterator[tuple[Misread, list[Node]]]:
    """The same for a number that is read along an axis, from the node that made it."""
    path: list[Node] = []
    here, wanted = node, axis
    while here is not None and len(path) < _FAR:
        path.append(here)
        if type(here).__name__ in SOFTMAXES:
            yield from ((one, path) for one in _judged(here, wanted))
            return
        some = [parent for parent in parents_of(here) if parent is not None]
        below = axis_below(here, some[0], wanted) if len(some) == 1 else None
        if below is None:
            return
        here, wanted = some[0], below


def is_share(node: Node | None) -> bool:
    """True for what is a softmax itself, along whatever axis: rows and columns of one table."""
    for _ in range(_FAR):
        if node is None or type(node).__name__ in SOFTMAXES:
            break
        some = [parent for parent in parents_of(node) if parent is not None]
        node = some[0] if len(some) == 1 else None
    return node is not None


def _judged(softmax: Node, wanted: int) -> Iterator[Misread]:
    shape, own = private.output_shape(softmax), axis_of(softmax)
    if shape is None or own is None or wanted >= len(shape) or own == wanted:
        return
    if min(shape[own], shape[wanted]) > 1 and shape[own] != shape[wanted]:
        yield Misread(softmax, shape, own, wanted)


def axis_below(node: Node, parent: Node, axis: int) -> int | None:
    """The axis of what a node was given that an axis of its result comes from; None if that is not known."""
    name, before, after = type(node).__name__, private.output_shape(parent), private.output_shape(node)
    if before is None or after is None:
        return None
    if name in _STAYS:
        return axis if before == after else None
    if name in _VIEWS:
        return _axis_before_view(before, after, axis)
    return _axis_before_move(node, name, len(after), axis)


def _axis_before_move(node: Node, name: str, count: int, axis: int) -> int | None:
    if name == "PermuteBackward0":
        return counted(node._saved_dims[axis], count)
    if name == "TransposeBackward0":
        one, two = counted(node._saved_dim0, count), counted(node._saved_dim1, count)
        return {one: two, two: one}.get(axis, axis)
    if name == "UnsqueezeBackward0":
        added = counted(node._saved_dim, count)
        return None if axis == added else axis - (axis > added)
    if name == "SqueezeBackward1":
        return axis + (axis >= counted(node._saved_dim, count + 1))
    return 1 - axis if name == "TBackward0" else None


def counted(axis: int, count: int) -> int:
    """An axis counted from the front; torch keeps negative ones as unsigned numbers."""
    return (int(axis) - 2**64 if axis >= 2**63 else int(axis)) % count


def _axis_before_view(before: Shape, after: Shape, axis: int) -> int | None:
    """Where the axes in front of it, or those behind it, were merged or split and it was not."""
    longer, long_after = [i for i, n in enumerate(before) if n != 1], [i for i, n in enumerate(after) if n != 1]
    if axis in long_after and [before[i] for i in longer] == [after[i] for i in long_after]:
        return longer[long_after.index(axis)]  # only axes of length 1 came or went
    behind = len(after) - axis
    if len(before) >= behind and before[-behind:] == after[-behind:]:
        return len(before) - behind
    return axis if before[: axis + 1] == after[: axis + 1] else None
