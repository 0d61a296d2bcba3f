"""Losses that are a plain sum or mean of differences: predictions minus targets, with nothing that loses the sign."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact
from torch_inspector.observe import private
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node

SIGNED = "signed-differences"
_REDUCTIONS = ("Sum", "Mean")
_SCALINGS = ("Mul", "Div", "Neg", "ToCopy", "Squeeze", "View", "ReshapeAlias", "UnsafeView")
_DIFFERENCES = ("Sub", "Rsub")
# What makes a prediction of features and parameters, or only gives it another form.
_SHAPES = (
    "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Index", "Transpose", "T",
    "Permute", "Expand", "Clone", "ToCopy", "Alias", "Gather", "Split", "Unbind", "Cat", "Stack",
)  # fmt: skip
_SMOOTH = (
    "Mul", "Div", "Add", "Neg", "Relu", "LeakyRelu", "Gelu", "Silu", "Elu", "Tanh", "Sigmoid", "Softmax",
    "NativeDropout", "NativeBatchNorm", "NativeLayerNorm",
)  # fmt: skip
_ENDS = (
    "Addmm", "Mm", "Mv", "Bmm", "Baddbmm", "Addmv", "Linear", "MkldnnLinear", "Convolution", "Embedding", "Dot",
)  # fmt: skip
_BOUNDED = ("Softmax", "Sigmoid", "Tanh", "Clamp", "Sin", "Cos")
# Operations looked at from the loss on, and behind the difference.
_TOP, _BEHIND = 8, 60


def signed_differences(walk: Walk) -> Iterator[PatternFact]:
    """The difference below the reductions of a loss, if one side is a prediction and the other has no history."""
    root = next(iter(walk.nodes.values()), None)
    found = _below_reductions(root) if root is not None and walk.complete else None
    if found is None:
        return
    names, difference = found
    sides = [(node, result) for node, result in difference.next_functions[:2] if node is not None]
    if len(sides) != 1 or not _is_prediction(sides[0][0]) or _is_bounded(sides[0][0]):
        return
    shape = private.output_shape(difference, 0)
    if shape is not None:
        yield PatternFact(SIGNED, (*names, type(difference).__name__), (shape,))


def _below_reductions(root: Node) -> tuple[tuple[str, ...], Node] | None:
    """The first operation below the sums, means and scalings of a loss, if it is a difference."""
    names: tuple[str, ...] = ()
    node = root
    while len(names) < _TOP:
        kind = _kind(node)
        if kind in _DIFFERENCES:
            return (names, node) if any(name.startswith(_REDUCTIONS) for name in names) else None
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if kind not in (*_REDUCTIONS, *_SCALINGS) or len(parents) != 1:
            return None
        names, node = (*names, type(node).__name__), parents[0]
    return None


def _is_prediction(node: Node) -> bool:
    """True if parameters lead to it through layers and what is written like one; never through a logarithm."""
    stack, seen = [node], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen or private.is_leaf_node(node):
            continue
        seen.add(id(node))
        if len(seen) > _BEHIND or _kind(node) not in (*_SHAPES, *_SMOOTH, *_ENDS):
            return False
        if _kind(node) not in _ENDS:
            stack.extend(parent for parent, _ in node.next_functions if parent is not None)
    return True


def _is_bounded(node: Node) -> bool:
    """True if whatever is learned reaches it through a function with bounds: then the sum has a lowest value."""
    stack, seen = [node], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen or _kind(node) in _BOUNDED:
            continue
        seen.add(id(node))
        if private.is_leaf_node(node) or len(seen) > _BEHIND:
            return False
        stack.extend(parent for parent, _ in node.next_functions if parent is not None)
    return True


def _kind(node: Node) -> str:
    """`Sub` for a `SubBackward0`."""
    return type(node).__name__.rstrip("0123456789").removesuffix("Backward")
