"""Mixtures whose weights sum to 1 along another axis than that of the parts which are added up.

As `torch.logsumexp(log_w + log_p, -1)` and `sum(w[:, i : i + 1] * part(x) for i, part in enumerate(parts))`, with a
softmax of the scores of a layer along the samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.class_axis import SOFTMAXES, Misread, axis_below, counted, is_share, misread_from
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.own_rows import differs_along, has_own_rows
from torch_inspector.observe.private import Node
from torch_inspector.observe.raw_scores import LINEAR
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import IN_PLACE, axis_of, parents_of
from torch_inspector.observe.weighed import is_time_first

AVERAGED = "mean of sums"
"""What reads weights of which no more is known than that: a hint."""

# What scores go through before the softmax.
_SCORED = frozenset(
    f"{name}Backward{n}"
    for name in (
        "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Mul", "Div", "Add", "MaskedFill", "Clone",
        "Slice", "Split", "SplitWithSizes", "Tanh",
    )
    for n in range(2)
)  # fmt: skip
_TOTALS = frozenset(["SumBackward0", "SumBackward1", "MeanBackward0", "MeanBackward1"])
# Between a sum of probabilities and its logarithm.
_TO_LOG = IN_PLACE | {"AddBackward0", "SqueezeBackward0", "SqueezeBackward1"}
_PICKS = frozenset(["SliceBackward0", "SelectBackward0"])
_PAIR, _FAR, _NEAR = 2, 12, 4
# Parts that are written out or added up in a loop.
_PARTS = 64


class Mixture(NamedTuple):
    """A softmax whose numbers weigh parts."""

    weights: Misread
    reader: str
    """What adds the parts up."""
    path: list[Node]
    """From what weighs down to the softmax."""


def mixtures(walk: Walk) -> Iterator[Mixture]:
    """All such softmaxes of a graph."""
    if SOFTMAXES.isdisjoint(walk.by_kind):
        return
    for weights, reader, path in (*_of_logarithms(walk), *_of_sums(walk), *_of_parts(walk)):
        if _is_scored(weights.softmax):
            yield Mixture(weights, reader, path)


def _of_logarithms(walk: Walk) -> Iterator[Mixture]:
    """`logsumexp(log_w + log_p, axis)` of as many weights as densities: those of a transition are fewer."""
    for node in walk.by_kind.get("LogsumexpBackward0", ()):
        below, axes = parents_of(node)[0], node._saved_dim
        if type(below).__name__ in {"AddBackward0", "SubBackward0"} and below is not None and len(axes) == 1:
            yield from _weighed(below, counted(axes[0], len(private.output_shape(below) or (1,))), "logsumexp")


def _of_sums(walk: Walk) -> Iterator[Mixture]:
    """`(w * p).sum(axis)` whose logarithm or whose mean is taken: a mean of what sums to 1 along the samples is odd."""
    consumers = Consumers(walk)
    for node in walk.by_kind.get("SumBackward1", ()):
        below, axes = parents_of(node)[0], node._saved_dim
        shape = private.output_shape(below) if type(below).__name__ == "MulBackward0" and below is not None else None
        if below is None or not shape or len(axes) != 1:
            continue
        axis = counted(axes[0], len(shape))
        if _is_logged(node, consumers):
            yield from _weighed(below, axis, "sum of parts")
        elif len(shape) == _PAIR and _is_averaged(node, consumers):
            found = _weighed(below, axis, AVERAGED, constant=True)
            yield from (one for one in found if _is_expectation(one, consumers))


def _is_averaged(node: Node, consumers: Consumers) -> bool:
    users = consumers.of(node)
    users = consumers.of(users[0]) if [type(one).__name__ for one in users] == ["NegBackward0"] else users
    return [type(one).__name__ for one in users] == ["MeanBackward0"]


def _is_expectation(found: Mixture, consumers: Consumers) -> bool:
    """True if probabilities along the first axis are used for that sum only, and no logarithms of them are."""
    of_samples = found.weights.axis == 0 and type(found.weights.softmax).__name__ == "SoftmaxBackward0"
    plain = all(type(one).__name__ != "LogBackward0" for one in found.path)
    return of_samples and plain and all(len(consumers.of(one)) == 1 for one in found.path)


def _is_logged(node: Node, consumers: Consumers) -> bool:
    users = [node]
    for _ in range(_NEAR):
        users = [user for one in users for user in consumers.of(one)]
        if any(type(user).__name__ == "LogBackward0" for user in users):
            return True
        users = [user for user in users if type(user).__name__ in _TO_LOG]
    return False


def _weighed(node: Node, axis: int, reader: str, *, constant: bool = False) -> Iterator[Mixture]:
    """The operand of a sum or a product that is weights, if the other one is none and has the same shape."""
    operands, shape = parents_of(node), private.output_shape(node)
    shapes = [_shape_of(node, place) if constant or one is not None else None for place, one in enumerate(operands)]
    if len(operands) != _PAIR or any(one != shape for one in shapes):
        return
    found = [(one, list(misread_from(one, axis))) for one in operands]
    if any(is_share(one) for one, parts in found if not parts):
        return
    if sum(bool(parts) for _, parts in found) != 1:
        return
    place, others = (0 if found[0][1] else 1), [one for one in range(len(shape or ())) if one != axis]
    if has_own_rows(node, 1 - place, others, axis):
        yield from (Mixture(weights, reader, path) for weights, path in found[place][1])


def _shape_of(product: Node, place: int) -> Shape | None:
    """The shape of an operand; of one without a history, as the product keeps it."""
    node = product.next_functions[place][0]
    if node is not None:
        return private.output_shape(parents_of(product)[place] or node)
    kept = saved_value(product, "other" if place else "self")
    return tuple(as_torch.shape(kept)) if kinds.is_one_of(kept, (torch.Tensor,)) else None


class _Part(NamedTuple):
    """A product of one number of each sample with something."""

    product: Node
    softmax: Node
    axis: int
    """Of the softmax, from which the number was picked."""
    number: int
    path: list[Node]
    of_sample: bool
    """True if it is something of each sample that is weighed."""


def _of_parts(walk: Walk) -> Iterator[Mixture]:
    """Softmaxes along the first axis of which every number of a sample weighs something, all of which is added up."""
    softmaxes = [node for node in walk.by_kind.get("SoftmaxBackward0", ()) if axis_of(node) == 0]
    if not softmaxes or is_time_first(walk):
        return
    found = [part for node in walk.by_kind.get("MulBackward0", ()) for part in _parts(node)]
    consumers = Consumers(walk)
    for softmax in softmaxes:
        shape, parts = private.output_shape(softmax) or (), [one for one in found if one.softmax is softmax]
        axes = {one.axis for one in parts}
        axis = axes.pop() if len(axes) == 1 else 0
        if not 0 < axis < len(shape) or not 1 < shape[axis] <= _PARTS or shape[axis] == shape[0] or shape[0] == 1:
            continue
        every = {one.number for one in parts} == set(range(shape[axis])) and any(one.of_sample for one in parts)
        if every and _are_added_up(parts, consumers):
            yield Mixture(Misread(softmax, shape, 0, axis), "sum of parts", parts[0].path)


def _parts(product: Node) -> Iterator[_Part]:
    operands = parents_of(product)
    if len(operands) == _PAIR and None not in operands:
        for place in range(_PAIR):
            yield from _picked(product, place)


def _picked(product: Node, place: int) -> Iterator[_Part]:
    """The softmax below an operand, if one number of each sample was picked from it: `w[:, i : i + 1]`, `w[..., i]`."""
    node, axis, index = parents_of(product)[place], None, None
    path: list[Node] = []
    for _ in range(_FAR):
        if node is None or type(node).__name__ == "SoftmaxBackward0":
            break
        path.append(node)
        below, kind = parents_of(node)[0], type(node).__name__
        if kind in _PICKS and index is None and below is not None:
            axis, index = _pick(node, below)
        elif index is not None and axis is not None and below is not None:
            axis = axis_below(node, below, axis)
        elif kind not in {"UnsqueezeBackward0", "ExpandBackward0"}:
            return
        node = below
    if node is not None and axis is not None and index is not None and type(node).__name__ == "SoftmaxBackward0":
        yield _Part(product, node, axis, index, [*path, node], differs_along(product, 1 - place, (0,)))


def _pick(node: Node, below: Node) -> tuple[int | None, int | None]:
    """The axis and the number of what a slice of one number, or a selection, takes."""
    shape = private.output_shape(below) or ()
    axis = counted(node._saved_dim, len(shape)) if shape else 0
    if not shape:
        return None, None
    if type(node).__name__ == "SelectBackward0":
        return axis, counted(node._saved_index, shape[axis])
    made = private.output_shape(node) or ()
    single = len(made) == len(shape) and made[axis] == 1
    return (axis, counted(node._saved_start, shape[axis])) if single else (None, None)


def _are_added_up(parts: list[_Part], consumers: Consumers) -> bool:
    """True if one sum has all products, and is not added up over the samples itself."""
    sums = [_sums_above(part.product, consumers, len(parts)) for part in parts]
    common = [node for node in sums[0] if all(any(one is node for one in others) for others in sums[1:])]
    return bool(common) and not any(type(user).__name__ in _TOTALS for user in consumers.of(common[0]))


def _sums_above(product: Node, consumers: Consumers, count: int) -> list[Node]:
    """The additions that a product goes into, one after the other."""
    found, here = [], product
    shape = private.output_shape(product)
    for _ in range(count):
        users = [one for one in consumers.of(here) if type(one).__name__ == "AddBackward0"]
        if len(users) != 1 or private.output_shape(users[0]) != shape:
            break
        here = users[0]
        found.append(here)
    return found


def _is_scored(softmax: Node) -> bool:
    """True if a layer gave the scores, one row for each sample: its weight is not the first operand of the product."""
    here = parents_of(softmax)[0]
    for _ in range(_FAR):
        if here is None or not (type(here).__name__ in _SCORED or _turns_nothing(here)):
            break
        below = [parent for parent in parents_of(here) if parent is not None and not private.is_leaf_node(parent)]
        here = below[0] if below else None
    kind = type(here).__name__
    if here is None or kind not in LINEAR | {"ConvolutionBackward0"}:
        return False
    last = parents_of(here)[1 if kind != "AddmmBackward0" else 2 :][:1]
    own = (parents_of(one)[0] if type(one).__name__ == "TBackward0" and one is not None else one for one in last)
    return any(one is not None and private.is_leaf_node(one) for one in own)


def _turns_nothing(node: Node) -> bool:
    """True for `x.transpose(0, 0)`."""
    return type(node).__name__ == "TransposeBackward0" and node._saved_dim0 == node._saved_dim1
