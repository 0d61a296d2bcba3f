"""Shapes in an autograd graph that mean something: a softmax under a log-softmax, operands that were stretched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import private
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node

SOFTMAX = "softmax-before-log-softmax"
STRETCHED = "stretched-operands"

# Operations that hand values on unchanged.
_SAME_VALUES = frozenset(
    f"{name}Backward{n}"
    for name in (
        "View", "UnsafeView", "ReshapeAlias", "Permute", "Transpose", "T", "Squeeze", "Unsqueeze", "Clone", "ToCopy",
        "Alias", "Slice", "Select", "Index", "Contiguous", "IndexSelect",
    )
    for n in range(6)
)  # fmt: skip
_ELEMENTWISE = frozenset(
    f"{name}Backward{n}"
    for name in ("Pow", "Abs", "Mul", "Sqrt", "Log", "Log1P", "Exp", "Clamp", "Where", "Neg", "Div", "Add", "Huber")
    for n in range(4)
)
_PAIR_LOSSES = {"MseLossBackward0", "L1LossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0"}
_REDUCTIONS = {"MeanBackward0", "SumBackward0", "MeanBackward1", "SumBackward1"}
_HOPS = 6

NameShape = Callable[[Shape], str]
"""Finds a variable of this shape which the user's code subtracts; empty if there is none."""


def find_patterns(walk: Walk, name_shape: NameShape) -> tuple[PatternFact, ...]:
    """All patterns in a graph, each once."""
    found: list[PatternFact] = []
    for node in walk.nodes.values():
        name = type(node).__name__
        if name == "LogSoftmaxBackward0":
            found.extend(_softmax_below(node))
        elif name in _PAIR_LOSSES:
            found.extend(_stretched_pair_loss(node))
        elif name in _REDUCTIONS:
            found.extend(_stretched_difference(node, name_shape))
    return tuple(dict.fromkeys(found))


def _parent(node: Node, number: int = 0) -> tuple[Node | None, Shape | None]:
    """The node that made an input of this operation, and that input's shape."""
    inputs = node.next_functions
    if number >= len(inputs) or inputs[number][0] is None:
        return None, None
    parent, result = inputs[number]
    return parent, private.output_shape(parent, result)


def _softmax_below(node: Node) -> Iterator[PatternFact]:
    path, moved, here = [type(node).__name__], False, node
    for _ in range(_HOPS):
        parent, shape = _parent(here)
        if parent is None:
            return
        here, name = parent, type(parent).__name__
        path.append(name)
        if name == "SoftmaxBackward0":
            if moved or _axis(node) == _axis(here):
                yield PatternFact(SOFTMAX, tuple(path), (_classes(here, shape),))
            return
        if name not in _SAME_VALUES:
            return
        moved = moved or not name.startswith(("Clone", "ToCopy", "Alias", "Contiguous"))


def _axis(node: Node) -> int | None:
    """Axis of a softmax node, counted from the front."""
    shape = private.output_shape(node)
    axis = int(node._saved_dim)
    axis = axis - 2**64 if axis >= 2**63 else axis
    return axis % len(shape) if shape else None


def _classes(node: Node, shape: Shape | None) -> Shape:
    axis = _axis(node)
    return (shape[axis],) if shape and axis is not None else ()


def _stretched_pair_loss(node: Node) -> Iterator[PatternFact]:
    """`mse_loss` and its kin expand both sides: an input made by an expand, a target with stride 0."""
    parent, result = _parent(node)
    if parent is None or result is None:
        return
    first = _parent(parent)[1] if type(parent).__name__ == "ExpandBackward0" else result
    second = _saved_shape(node, "_raw_saved_target")
    if first and second and _is_column_against_row(first, second, result):
        yield PatternFact(STRETCHED, (type(node).__name__,), (result, first, second))


def _saved_shape(node: Node, name: str) -> Shape | None:
    """Shape that a saved operand had before it was stretched."""
    saved = getattr(node, name, None)
    tensor: Any = saved.data if saved is not None else None
    if not issubclass(type(tensor), torch.Tensor):
        return None
    base = tensor._base
    if base is not None and 0 in tensor.stride() and base.numel() * tensor.shape[0] == tensor.numel():
        return tuple(base.shape)
    return tuple(tensor.shape)


def _is_column_against_row(first: Shape, second: Shape, result: Shape) -> bool:
    """True for (N, 1) with (N,) to (N, N), N above 1. (N, 1) with (1, N) is a table made on purpose."""
    if len(result) != 2 or result[0] != result[1] or result[0] < 2:  # noqa: PLR2004
        return False
    n = result[0]
    return {first, second} == {(n, 1), (n,)}


def _stretched_difference(node: Node, name_shape: NameShape) -> Iterator[PatternFact]:
    """A hand-written loss: a difference that is (N, N), somewhere under a mean or a sum."""
    difference = _difference_below(node)
    if difference is None:
        return
    result = private.output_shape(difference)
    (left, left_shape), (right, right_shape) = _parent(difference, 0), _parent(difference, 1)
    if result is None or len(result) != 2 or result[0] != result[1] or result[0] < 2:  # noqa: PLR2004
        return
    known = left_shape or right_shape
    if known is None or any(type(n).__name__ == "UnsqueezeBackward0" for n in (left, right) if n is not None):
        return
    other, name = right_shape if left_shape else None, ""
    if other is None:
        other = (result[0],) if known == (result[0], 1) else (result[0], 1)
        name = name_shape(other)
        if not name:
            return
    if _is_column_against_row(known, other, result):
        yield PatternFact(STRETCHED, (type(node).__name__, type(difference).__name__), (result, known, other), (name,))


def _difference_below(node: Node) -> Node | None:
    here = node
    for _ in range(_HOPS):
        parent, _ = _parent(here)
        parent = parent if parent is not None else _parent(here, 1)[0]
        if parent is None:
            return None
        here, name = parent, type(parent).__name__
        if name in {"SubBackward0", "RsubBackward1", "RsubBackward0"}:
            return here
        if name not in _ELEMENTWISE:
            return None
    return None
