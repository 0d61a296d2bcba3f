"""Layers that read the last axis of a tensor as features: the text calls them so, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Callable

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node

# Layers with features, and which of their inputs has them.
_INPUTS = {
    "AddmmBackward0": 1, "MmBackward0": 0, "LinearBackward0": 0, "MkldnnLinearBackward0": 0,
    "CudnnRnnBackward0": 0, "MiopenRnnBackward0": 0, "MkldnnRnnLayerBackward0": 0,
}  # fmt: skip
_CONVOLUTION = "ConvolutionBackward0"
# What hands features on, as long as the last axis stays: an addition of positions, a dropout, one step of many.
_PASSES = (
    "View", "UnsafeView", "ReshapeAlias", "Clone", "ToCopy", "Add", "Mul", "Relu", "LeakyRelu", "Elu", "Gelu", "Silu",
    "Tanh", "Sigmoid", "NativeDropout", "NativeLayerNorm", "Select", "Unbind", "Slice", "Index", "Cat", "Mean", "Sum",
)  # fmt: skip
_TURNS = ("Transpose", "Permute", "T")
_MOST = 64


def read_as_features(walk: Walk, node: Node, shape: Shape) -> bool:
    """True if a linear or recurrent layer, or a convolution along the steps, takes the last axis for its features.

    Args:
        walk: The graph.
        node: What made the tensor.
        shape: Of that tensor.
    """
    return bool(_reader(walk, node, shape[-1], _hands_on, dimensions=(3,)))


def reader_of_channels(walk: Walk, node: Node, shape: Shape) -> str:
    """The operation, linear, recurrent or a convolution, that takes the second axis for its features; empty if none."""
    return _reader(walk, node, shape[1], _carries, dimensions=(3, 4))


def _reader(
    walk: Walk, node: Node, width: int, hands_on: Callable[[Node, int], bool], dimensions: tuple[int, ...]
) -> str:
    consumers, todo, seen = Consumers(walk), [node], set[int]()
    while todo and len(seen) < _MOST:
        here = todo.pop()
        for user in consumers.of(here):
            if _reads(user, here, width, dimensions):
                return type(user).__name__
            if id(user) not in seen and hands_on(user, width):
                seen.add(id(user))
                todo.append(user)
    return ""


def _reads(user: Node, given: Node, width: int, dimensions: tuple[int, ...]) -> bool:
    name, shape = type(user).__name__, _shape(given)
    if name == _CONVOLUTION:
        return len(shape) in dimensions and shape[1] == width and user.next_functions[0][0] is given
    edges, at = user.next_functions, _INPUTS.get(name)
    return at is not None and shape[-1:] == (width,) and at < len(edges) and edges[at][0] is given


def _hands_on(user: Node, width: int) -> bool:
    name, shape = type(user).__name__, _shape(user)
    turned = any(name.startswith(f"{one}Backward") for one in _TURNS) and width in shape
    return turned or (shape[-1:] == (width,) and any(name.startswith(f"{one}Backward") for one in _PASSES))


def _carries(user: Node, width: int) -> bool:
    """True for what leaves an axis of that length, wherever it is."""
    name = type(user).__name__
    return width in _shape(user) and any(name.startswith(f"{one}Backward") for one in (*_PASSES, *_TURNS, "Squeeze"))


def _shape(node: Node) -> Shape:
    return private.output_shape(node) or ()
