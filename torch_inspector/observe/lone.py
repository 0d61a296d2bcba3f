"""A softmax over one number, which is 1 whatever the number is, where a loss or an attention uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import torch

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.attended import SCORED, down
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import axis_of, parents_of

LONE = "softmax-of-one"

_VIEWS = frozenset(
    ["ViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1", "SelectBackward0"]
)
_BINARY = {"BinaryCrossEntropyBackward0": "binary_cross_entropy", "MseLossBackward0": "mse_loss"}
_FAR = 3
# What scores go through before the softmax, and the end of a linear layer.
_SCALES = frozenset(["MulBackward0", "DivBackward0", "AddBackward0", "MaskedFillBackward0", "TanhBackward0"])
_OWN_VIEWS = frozenset(["ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0"])
_LINEAR = frozenset(["AddmmBackward0", "MmBackward0", "LinearBackward0", "MkldnnLinearBackward0"])
# The operand of a product that is what the layer was given, and the name under which it is kept.
_GIVEN = {"AddmmBackward0": (1, "mat1"), "MmBackward0": (0, "self")}
# Axes of (samples, steps, 1).
_STEPS = 3


def lone_softmaxes(walk: Walk, name_of: Callable[[list[Node]], str]) -> Iterator[PatternFact]:
    """Of (samples, 1) in a loss, of (samples, steps, 1) where the steps of a sample are weighed, and of one score."""
    for node in walk.by_kind.get("NllLossBackward0", ()):
        yield from _pattern("cross_entropy", parents_of(node)[0], axes=2)
    for kind, loss in _BINARY.items():
        for node in walk.by_kind.get(kind, ()):
            yield from _pattern(loss, _below_views(node), axes=2)
    for softmax in _pooled_steps(walk):
        yield from _pattern("attention", softmax, axes=3)
    told = {id(softmax) for softmax in _pooled_steps(walk)}
    for softmax in walk.by_kind.get("SoftmaxBackward0", ()):
        shape = private.output_shape(softmax)
        if shape and id(softmax) not in told and _is_of_one_score(softmax, shape):
            name = name_of([softmax])
            names, keys = ("scores", "SoftmaxBackward0"), _keys_of(_scores_of(softmax))
            yield PatternFact(LONE, names, (shape,), (name,) if name else (), keys=keys)


def _is_of_one_score(softmax: Node, shape: Shape) -> bool:
    """True if a layer with one output gave the scores, and the softmax runs along that very axis of many samples."""
    axis, scores = axis_of(softmax), _scores_of(softmax)
    if axis is None or len(shape) <= 1 or shape[axis] != 1 or prod(shape) <= 1 or scores is None:
        return False
    if type(scores).__name__ == "ConvolutionBackward0":
        return private.output_shape(scores) == shape and axis == 1
    made = private.output_shape(scores)
    return _is_of_a_layer(scores) and made is not None and made[-1] == 1 and axis == len(shape) - 1


def _is_of_a_layer(scores: Node) -> bool:
    """True for a product with a weight; of memories `x @ memory.T` there may be one for now."""
    if type(scores).__name__ != "MmBackward0":
        return type(scores).__name__ in _LINEAR
    weight = (*parents_of(scores), None, None)[1]
    if type(weight).__name__ == "TBackward0" and weight is not None:
        weight = parents_of(weight)[0]
    return type(weight).__name__ == "AccumulateGrad"


def _keys_of(scores: Node) -> frozenset[int]:
    """The parameters of the layer that gave the scores."""
    below = [parents_of(one)[0] if type(one).__name__ == "TBackward0" else one for one in parents_of(scores)]
    return frozenset(id(one.variable) for one in below if one is not None and private.is_leaf_node(one))


def _scores_of(softmax: Node) -> Node | None:
    """The layer that gave the scores, past scales and masks.

    Not past a view, by which the axis may be one of steps of which there is one now, but that of the layer itself for
    samples of several steps.
    """
    here = parents_of(softmax)[0]
    for _ in range(_FAR):
        if here is None or type(here).__name__ not in _SCALES:
            break
        here = next((one for one in parents_of(here) if one is not None), None)
    own = here is not None and _is_own_view(here, private.output_shape(here) or private.output_shape(softmax) or ())
    return parents_of(here)[0] if own and here is not None else here


def _is_own_view(view: Node, shape: Shape) -> bool:
    """True for the view by which a layer gives its result the axes of what it was given, each longer than 1.

    Of one step, a view to (samples, 1, steps) would look the same.
    """
    if type(view).__name__ not in _OWN_VIEWS or len(shape) < _STEPS or min(shape[:-1]) <= 1:
        return False
    given = _given_shape(parents_of(view)[0])
    return given is not None and len(given) == len(shape) and given[1:-1] == shape[1:-1]


def _given_shape(layer: Node) -> Shape | None:
    """The shape of what a layer laid flat; of plain data, that of the tensor of which it is a part."""
    place, name = _GIVEN.get(type(layer).__name__, (0, ""))
    flat = parents_of(layer)[place] if name else None
    if flat is not None:
        above = parents_of(flat)[0] if type(flat).__name__ in _OWN_VIEWS else None
        return private.output_shape(above) if above is not None else None
    kept = saved_value(layer, name) if name else None
    base = as_torch.base(kept) if kinds.is_one_of(kept, (torch.Tensor,)) else None
    return tuple(as_torch.shape(base)) if base is not None else None


def _pooled_steps(walk: Walk) -> Iterator[Node]:
    """Softmaxes of (samples, steps, 1), the scores that a layer gives each step, where the steps are then added up."""
    for node in walk.by_kind.get("SumBackward1", ()):
        product, axes = parents_of(node)[0], node._saved_dim
        if type(product).__name__ != "MulBackward0" or product is None or len(axes) != 1:
            continue
        for softmax in parents_of(product) if int(axes[0]) in (1, 2**64 - 2) else ():
            shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
            steps = shape is not None and len(shape) == _STEPS and min(shape[:2]) > 1 and shape[2] == 1
            if softmax is not None and steps and type(down(softmax, SCORED)).__name__ in _LINEAR:
                yield softmax


def _pattern(reader: str, node: Node, *, axes: int) -> Iterator[PatternFact]:
    kind, shape = type(node).__name__, _shape_of(node)
    if shape and len(shape) == axes and min(shape[:-1]) > 1 and shape[-1] == 1 and axis_of(node) == axes - 1:
        yield PatternFact(LONE, (reader, kind), (shape,))


def _shape_of(node: Node) -> Shape | None:
    softmax = type(node).__name__ in {"SoftmaxBackward0", "LogSoftmaxBackward0"}
    return private.output_shape(node) if softmax else None


def _below_views(node: Node) -> Node:
    here = parents_of(node)[0]
    for _ in range(_FAR):
        if type(here).__name__ not in _VIEWS or here is None:
            break
        here = parents_of(here)[0]
    return here
