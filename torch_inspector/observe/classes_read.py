"""What reads a softmax along the first axis as if its classes lay along the second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.distributions import is_of_classes
from torch_inspector.observe.private import Node
from torch_inspector.observe.raw_scores import LINEAR
from torch_inspector.observe.saved import saved_value, saved_values
from torch_inspector.observe.softmax import IN_PLACE, axis_of, parents_of

_SOFTMAXES = frozenset(["SoftmaxBackward0", "LogSoftmaxBackward0"])
# What keeps every number in its place on the way from a softmax over classes to the number that is picked.
_LOGARITHMS = IN_PLACE | {"LogBackward0", "AddBackward0", "ExpandBackward0", "NegBackward0"}
# Operations between them, one after the other.
_FAR = 12


def classes_below(node: Node) -> list[Node]:
    """The way down to a softmax that a loss reads; empty if there is none, or if values were moved on it."""
    path: list[Node] = []
    here = _factor(node) if type(node).__name__ == "SumBackward1" else parents_of(node)[0]
    while here is not None and len(path) < _FAR:
        path.append(here)
        name = type(here).__name__
        if name in _SOFTMAXES:
            return path
        some = [parent for parent in parents_of(here) if parent is not None]
        here = some[0] if (name in _LOGARITHMS and len(some) == 1) or _normalises(here) else None
    return []


def _factor(node: Node) -> Node | None:
    """The logarithm that a sum of products with a constant adds up, as a hand-written cross-entropy does."""
    below = parents_of(node)[0]
    some = [parent for parent in parents_of(below) if parent is not None] if below is not None else []
    fits = type(below).__name__ == "MulBackward0" and len(some) == 1
    return some[0] if fits and type(some[0]).__name__ in {"LogBackward0", "LogSoftmaxBackward0"} else None


def _normalises(node: Node) -> bool:
    """True for `p / p.sum(-1, keepdim=True)`, which a distribution does with its probabilities."""
    parents = parents_of(node)
    if type(node).__name__ != "DivBackward0" or len(parents) != 2:  # noqa: PLR2004
        return False
    top, bottom = parents
    return type(bottom).__name__ == "SumBackward1" and parents_of(bottom)[0] is top


def along_batch(end: Node | None) -> Shape | None:
    """Shape of a softmax that was taken along the first of several axes, where that cannot be the axis of classes."""
    shape = private.output_shape(end) if end is not None else None
    if shape is None or len(shape) < 2 or min(shape[:2]) < 2 or axis_of(end) != 0:  # noqa: PLR2004
        return None
    return shape


def _unlike(shape: Shape) -> bool:
    """False for a square: as many texts as images, each the class of the other, have two softmaxes that are right."""
    return shape[0] != shape[1]


def _reads_gathered(node: Node, _: list[Node], shape: Shape) -> bool:
    axis, picked = int(node._saved_dim), private.output_shape(node)
    axis = axis - 2**64 if axis >= 2**63 else axis
    return axis % len(shape) == 1 and picked == (shape[0], 1, *shape[2:]) and _unlike(shape)


def _reads_picked(node: Node, _: list[Node], shape: Shape) -> bool:
    """`p[torch.arange(n), labels]` picks one class for each of n samples."""
    picked = private.output_shape(node)
    given = [tuple(one.shape) for one, _ in saved_values(node) if one is not None]
    return len(shape) == 2 and picked == (shape[0],) and given == [picked, picked] and _unlike(shape)  # noqa: PLR2004


def _reads_rows(node: Node, path: list[Node], shape: Shape) -> bool:
    """A loss on the output of a layer, whose rows are samples; not one that compares with weights of these."""
    of_samples = len(shape) == 2 and type(parents_of(path[-1])[0]).__name__ in LINEAR  # noqa: PLR2004
    return of_samples and _unlike(shape) and is_of_classes(_target(node))


def _target(node: Node) -> Any:
    """What a loss compares with; of a sum, what the product below it was given."""
    if type(node).__name__ != "SumBackward1":
        return saved_value(node, "target")
    product = parents_of(node)[0]
    return saved_value(product, "other" if parents_of(product)[-1] is None else "self") if product is not None else None


def _reads_sum(node: Node, path: list[Node], shape: Shape) -> bool:
    axes = node._saved_dim
    one = int(axes[0]) if len(axes) == 1 else 0
    one = one - 2**64 if one >= 2**63 else one
    return one in {1, -1} and _reads_rows(node, path, shape)


READERS: dict[str, Callable[[Node, list[Node], Shape], bool]] = {
    "GatherBackward0": _reads_gathered,
    "IndexBackward0": _reads_picked,
    "BinaryCrossEntropyBackward0": _reads_rows,
    "MseLossBackward0": _reads_rows,
    "SumBackward1": _reads_sum,
}
READ_AS = {
    "GatherBackward0": "gather",
    "IndexBackward0": "indexing",
    "BinaryCrossEntropyBackward0": "binary_cross_entropy",
    "MseLossBackward0": "mse_loss",
    "SumBackward1": "sum",
}
