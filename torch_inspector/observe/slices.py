"""Slices that leave nothing out: older releases of torch make one for each `:` of `x[:, None]`, newer ones none."""

from __future__ import annotations

from torch_inspector.observe import private
from torch_inspector.observe.private import Node

# Axes of a tensor, each of which may have been written as `:`.
_FAR = 8


def is_whole(node: Node) -> bool:
    """True for a slice whose result is all that it was given."""
    if type(node).__name__ != "SliceBackward0":
        return False
    parent, number = node.next_functions[0]
    shape = private.output_shape(node)
    return parent is not None and shape is not None and private.output_shape(parent, number) == shape


def past_whole(node: Node | None) -> Node | None:
    """What made the tensor that a node gave, with slices that leave nothing out passed over."""
    for _ in range(_FAR):
        if node is None or not is_whole(node):
            break
        node = node.next_functions[0][0]
    return node
