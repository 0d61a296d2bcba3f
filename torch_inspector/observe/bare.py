"""Plain tensors with `requires_grad` that a graph uses as weights: one value for all samples, as no data is used.

Data may want gradients too, for its own sake or because a beginner says so everywhere. So a leaf counts only where the
operation tells: it is stretched over the first axis of what it meets, it stands where a layer has its weights, or it
weighs a loss that is summed up already.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import parents_of

# Leaves of one graph that are judged, and operations one after the other on the way from one to what it meets.
_LEAVES, _FAR = 16, 5
# Nodes below one that are searched for what is learned; depth first, a layer is near.
_BELOW = 300
_UNARY = frozenset(
    f"{name}Backward{number}"
    for name in ("Neg", "Exp", "Log", "Sqrt", "Rsqrt", "Reciprocal", "Pow", "Softplus", "Sigmoid", "Tanh", "Clamp")
    for number in (0, 1)
) | {"AbsBackward0", "ReluBackward0", "ClampMinBackward0", "UnsqueezeBackward0"}
_BINARY = frozenset(f"{name}Backward0" for name in ("Add", "Sub", "Rsub", "Mul", "Div")) | {"RsubBackward1"}
# Places of weights among what an operation was given, bias included.
_WEIGHTS = {
    "ConvolutionBackward0": (1, 2),
    "NativeLayerNormBackward0": (1, 2),
    "NativeBatchNormBackward0": (1, 2),
    "EmbeddingBackward0": (0,),
    "AddmmBackward0": (0,),
}
_FILTERS = "ConvolutionBackward0"
_PRODUCT, _BEHIND, _MATRIX = "MmBackward0", 1, 2
_EXPANDS = "ExpandBackward0"
# What may use a weight besides, as a penalty does; any other use might be that of data.
_NEUTRAL = _UNARY | _BINARY | {"SumBackward0", "MeanBackward0", "NormBackward0", "LinalgVectorNormBackward0", _EXPANDS}
_TURNED = frozenset(["TBackward0", "TransposeBackward0", "PermuteBackward0", "SoftmaxBackward0"])
_REDUCTIONS = frozenset(["MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"])
_LOSSES = frozenset(
    f"{name}Backward0"
    for name in ("MseLoss", "NllLoss", "NllLoss2D", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy")
) | {"BinaryCrossEntropyWithLogitsBackward0"}


class _Graph(Consumers):
    """The graph behind a loss, read both ways."""

    def __init__(self, walk: Walk, held: frozenset[int]) -> None:
        super().__init__(walk)
        self._held, self._lowest = held, walk.lowest

    def is_learned(self, node: Node | None) -> bool:
        """True for what a parameter, or another tensor that an optimizer holds, has a part in."""
        stack, seen = [node], set[int]()
        while stack and len(seen) < _BELOW:
            here = stack.pop()
            if here is None or id(here) in seen:
                continue
            seen.add(id(here))
            if not private.is_leaf_node(here):
                stack.extend(parents_of(here) if private.node_number(here) >= self._lowest else ())
            elif not _is_bare(here.variable, self._held):
                return True
        return False


def bare_weights(walk: Walk, held: frozenset[int]) -> Iterator[torch.Tensor]:
    """The leaves of a graph that are weights by their use, no parameters by their class, and in no optimizer."""
    all_leaves = walk.by_kind.get("AccumulateGrad", ())
    leaves = [node for node in all_leaves if _is_bare(node.variable, held)]
    by_hand = any(type(node.variable) is torch.Tensor and id(node.variable) in held for node in all_leaves)
    graph = _Graph(walk, held)
    for node in leaves[:_LEAVES]:
        if _is_weight(node, graph) and (by_hand or not _is_filter(node, graph)):
            yield node.variable


def _is_filter(leaf: Node, graph: _Graph) -> bool:
    """True for what a convolution takes: perhaps a fixed template, where no weight that is learned is plain, too."""
    return any(type(user).__name__ == _FILTERS for user in graph.of(leaf))


def _is_bare(leaf: Any, held: frozenset[int]) -> bool:
    # What `torch.func` wraps has no storage of its own.
    return type(leaf) is torch.Tensor and id(leaf) not in held and private.storage_of(leaf) is not None


def _is_weight(leaf: Node, graph: _Graph) -> bool:
    """True if one use is that of a weight, and none may be that of data."""
    uses = list(_uses(leaf, tuple(leaf.variable.shape), graph, _FAR))
    return any(uses) and None not in uses


def _uses(node: Node, shape: Shape, graph: _Graph, far: int) -> Iterator[bool | None]:
    """For each use of what a node made: True for a weight's, False for one that tells nothing, None for others."""
    for user in graph.of(node):
        kind, made = type(user).__name__, private.output_shape(user)
        if made is None or not far:
            yield None
        elif _as_weight(user, node, shape, made, graph):
            yield True
        elif kind in _NEUTRAL and _goes_on(user, made, shape):
            # Expanded, it is still the one value that it was.
            yield from _uses(user, shape if kind == _EXPANDS else made, graph, far - 1)
        else:
            yield False if kind in _NEUTRAL else None


def _goes_on(user: Node, made: Shape, shape: Shape) -> bool:
    """True for an operation that has changed only the numbers of the leaf."""
    kind = type(user).__name__
    alone = sum(parent is not None for parent in parents_of(user)) == 1
    return kind in _UNARY or kind == _EXPANDS or (kind in _BINARY and alone and made == shape)


def _as_weight(user: Node, node: Node, shape: Shape, made: Shape, graph: _Graph) -> bool:
    kind, parents = type(user).__name__, parents_of(user)
    place = next((index for index, parent in enumerate(parents) if parent is node), 0)
    if kind in _WEIGHTS:
        return place in _WEIGHTS[kind]
    if kind == _PRODUCT:
        return place == _BEHIND and _multiplies_rows(parents[0], shape, made)
    # Added to data, it may be a disturbance of these; of factors, their spread, a mask or how much each counts.
    if kind not in _BINARY or not all(parent is node or graph.is_learned(parent) for parent in parents):
        return False
    stretched = bool(made) and made[0] > 1 and (len(shape) < len(made) or shape[0] == 1)
    return stretched or (len(parents) == 2 and _is_total(parents[1 - place], made, shape))  # noqa: PLR2004


def _multiplies_rows(rows: Node, shape: Shape, made: Shape) -> bool:
    """True for `rows @ weight`, but not where a table of all pairs mixes rows of data."""
    if rows is not None and (private.is_leaf_node(rows) or type(rows).__name__ in _TURNED):
        return False
    return len(shape) == _MATRIX and 1 < made[0] != shape[0]


def _is_total(node: Node, made: Shape, shape: Shape) -> bool:
    """True for a loss that has no axis of samples any more."""
    total, kind = private.output_shape(node) if node is not None else None, type(node).__name__
    if total is None or total not in (made, ()) or (total == () and prod(shape) != 1):
        return False
    if kind in _LOSSES:
        return total == ()
    each = private.output_shape(parents_of(node)[0]) if kind in _REDUCTIONS else None
    return bool(each) and each is not None and each[0] > 1 and (total == () or total == each[1:] != each[:-1])
