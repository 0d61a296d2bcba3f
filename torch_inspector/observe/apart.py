"""Axes that a view merges though another one stands between them: what was side by side is not, and all is mixed."""

from __future__ import annotations

from math import prod

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import parents_of

_ATTENTION = "BmmBackward0"
_STACKS = frozenset(["StackBackward0", "CudnnRnnBackward0"])
_SEQUENCES, _CLIPS = 3, 5
# What gives (batch, channels, …) or (batch, heads, time, size), and what leaves it like that.
_TELLS = ("ConvolutionBackward", "ScaledDotProduct", "MkldnnConvolutionBackward")
_LEAVES = (
    "Clone", "Relu", "LeakyRelu", "Elu", "Gelu", "Silu", "Tanh", "Sigmoid", "HardtanhBackward", "Clamp", "PreluKernel",
    "NativeBatchNorm", "CudnnBatchNorm", "NativeGroupNorm", "NativeDropout", "MaxPool2D", "AvgPool2D", "Mul", "Add",
)  # fmt: skip
_FAR = 10


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


def maker_of(node: Node | None, shape: Shape) -> str:
    """The operation that made a tensor, if it says what its axes are: a convolution, or attention of heads."""
    for _ in range(_FAR):
        name = type(node).__name__
        if node is None or len(private.output_shape(node) or ()) != len(shape) or name.startswith(_TELLS):
            return name if name.startswith(_TELLS) else ""
        if name == "UnsafeViewBackward0":  # of `weights @ values`: (batch * heads, time, size), before the view
            return _ATTENTION if type(parents_of(node)[0]).__name__ == _ATTENTION else ""
        if not name.startswith(_LEAVES):
            return ""
        node = next((one for one in parents_of(node) if one is not None), None)
    return ""


def is_convolution(maker: str) -> bool:
    """True for one whose maps may be cut into groups or capsules, which come to the same sizes by chance."""
    return "Convolution" in maker
