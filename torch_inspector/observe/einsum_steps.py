"""What `einsum` puts around its product: axes of length 1, views without them, and turns that it undoes."""

from __future__ import annotations

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.private import Node

_VIEWS = frozenset(["ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward1"])
_FAR = 6


def past_einsum(node: Node | None) -> Node | None:
    """The first node below that is none of these; the node itself where the order of its axes is changed.

    Going down, the axes longer than 1 must come to lie where they were.
    """
    here, order = node, _axes(node)
    for _ in range(_FAR):
        kind = type(here).__name__
        if here is None or kind not in (*_VIEWS, "UnsqueezeBackward0", "PermuteBackward0"):
            break
        below = next((parent for parent, _ in here.next_functions if parent is not None), None)
        longer = _below(here, below, order)
        if longer is None:  # the axes of several samples and heads are put together, or are not known
            break
        here, order = below, longer
    return here if order == sorted(order or ()) else node


def _axes(node: Node | None) -> list[int] | None:
    """The axes longer than 1 of what a node gives, numbered."""
    shape = private.output_shape(node) if node is not None else None
    return list(range(sum(n > 1 for n in shape))) if shape is not None else None


def _below(node: Node, below: Node | None, order: list[int] | None) -> list[int] | None:
    """Numbers of the axes longer than 1 of what a node was given, in their order; None if they cannot be told."""
    made, given = (private.output_shape(one) if one is not None else None for one in (node, below))
    if order is None or made is None or given is None:
        return None
    if type(node).__name__ != "PermuteBackward0":
        return order if _long(made) == _long(given) else None
    turned = private.turned_axes(node)
    if turned is None or len(turned) != len(made):
        return None
    numbers = iter(order)
    at = {axis: next(numbers) for axis, length in zip(turned, made, strict=True) if length > 1}
    return [at[axis] for axis in sorted(at)]


def _long(shape: Shape) -> list[int]:
    return [n for n in shape if n > 1]
