"""Axes that a view merges though another one stands between them: what was side by side is not, and all is mixed."""

from __future__ import annotations

from math import prod

from torch_inspector.facts import Shape
from torch_inspector.observe.private import Node

_STACKS = frozenset(["StackBackward0", "CudnnRnnBackward0"])
_SEQUENCES, _CLIPS = 3, 5


def is_state(before: Shape, after: Shape) -> bool:
    """True for (layers, batch, size), as a recurrent layer leaves its state, cut into (batch, layers * size)."""
    if len(before) != _SEQUENCES or min(before) < 2:  # noqa: PLR2004
        return False
    layers, batch, size = before
    return tuple(n for n in after if n != 1) == (batch, layers * size) and layers != batch


def is_frames(before: Shape, after: Shape) -> bool:
    """True for clips (batch, channels, time, height, width) cut into pictures (batch * time, channels, …)."""
    if len(before) != _CLIPS or len(after) < _SEQUENCES:
        return False
    batch, channels, time, height, width = before
    pictures = after[2:] in ((height, width), (height * width,))
    return pictures and after[:2] == (batch * time, channels) and channels != time and min(channels, time) > 1


def is_classes(before: Shape, after: Shape) -> bool:
    """True for scores (batch, classes, …) of a convolution cut into rows (batch * …, classes)."""
    if len(before) < _SEQUENCES or min(before[1:]) < 2:  # noqa: PLR2004
        return False
    batch, classes, *places = before
    return after == (batch * prod(places), classes) and classes not in (*places, prod(places))


def is_stacked(node: Node) -> bool:
    """True if what a node made is parts put in front of each other, as the layers of a state or steps in time."""
    kind = type(node).__name__
    # A negative axis is kept as an unsigned number.
    return kind in _STACKS and (kind != "StackBackward0" or int(node._saved_dim) in (0, 2**64 - _SEQUENCES))
