"""In which precision a loss was computed, how its scalar end looks, and whether `backward` runs under autocast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import as_torch, private

if TYPE_CHECKING:
    from torch_inspector.observe.graph import Walk
    from torch_inspector.observe.private import Node
from torch_inspector.observe.terms import number_of, scaling_inside, weights_of

# Nodes asked for the type of their result, about 1 µs each.
_NODES = 300
# Operations followed from the loss on: scalings, sums of parts.
_TOP = 6
_SCALINGS = ("MulBackward0", "DivBackward0", "NegBackward0", "ToCopyBackward0")


class Precision(NamedTuple):
    """What the nodes say."""

    float16_count: int
    float16_leaf_count: int
    top: tuple[str, ...]
    mean_reduced: bool | None
    mean_shape: Shape = ()
    enlarged: bool = False
    weights: tuple[float | None, ...] = ()


def precision_of(root: Node, walk: Walk) -> Precision:
    """Looks at the types of results and at the operations next to the loss."""
    # Linear layers keep their operands: without any 16-bit numbers kept there is nothing to be asked.
    some = list(walk.nodes.values())[:_NODES] if walk.half_storages else []
    leaves = [node for node in some if private.is_leaf_node(node)]
    halves = sum(_is_float16(node) for node in some if not private.is_leaf_node(node))
    half_leaves = sum(node.variable.dtype == torch.float16 for node in leaves)
    top, below = _top_of(root)
    enlarged = halves > 0 and _is_enlarged(root, len(top) - 1)
    averages = private.averages(below)
    if _is_mean_of_samples(root, len(top) - 1):
        # The division is part of the loss, as in `kl_div(…, reduction="batchmean")`.
        top, averages = (*top[:-2], top[-1]), True
    if inside := scaling_inside(below, by_numbers=True):
        # Of each sample, as good as of the mean.
        top = (*top[:-1], inside, top[-1])
    shape = _input_shape(below) if averages else ()
    return Precision(halves, half_leaves, top, averages, shape, enlarged, weights_of(root))


def _is_mean_of_samples(root: Node, count: int) -> bool:
    """True if the last of some scalings divides a sum by the number of samples in it."""
    node = root
    for _ in range(count - 1):
        node = next(parent for parent, _ in node.next_functions if parent is not None)
    below = next((parent for parent, _ in node.next_functions if parent is not None), None)
    if type(node).__name__ != "DivBackward0" or type(below).__name__ != "SumBackward0" or below is None:
        return False
    shape = _input_shape(below)
    return len(shape) > 1 and shape[0] > 1 and number_of(node) == shape[0]


def _is_enlarged(root: Node, count: int) -> bool:
    """True if a product with a number above 1, or with one that cannot be read, is among the first operations."""
    node = root
    for _ in range(count):
        if type(node).__name__ == "MulBackward0":
            factor = number_of(node)
            if factor is None or factor > 1:
                return True
        node = next(parent for parent, _ in node.next_functions if parent is not None)
    return False


def _input_shape(node: Node) -> Shape:
    """Shape of the first operand of an operation that has history; empty if it is not known."""
    given = next(((parent, result) for parent, result in node.next_functions if parent is not None), None)
    return (private.output_shape(*given) if given is not None else None) or ()


def autocast_at(tensor: torch.Tensor) -> str:
    """Type of numbers of the autocast block around the code that runs, for the device of a tensor; empty if none."""
    kind = as_torch.device(tensor).type
    try:
        active = torch.is_autocast_enabled(kind)
        return str(torch.get_autocast_dtype(kind)).removeprefix("torch.") if active else ""
    except (RuntimeError, TypeError):  # devices that have no autocast; torch before 2.4
        return ""


def _is_float16(node: Any) -> bool:
    return private.output_dtype(node) is torch.float16


def _top_of(root: Node) -> tuple[tuple[str, ...], Node]:
    """Names of scalings from a loss on, and the first operation that is none."""
    names: tuple[str, ...] = ()
    node = root
    while type(node).__name__ in _SCALINGS and len(names) < _TOP:
        names = (*names, type(node).__name__)
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if len(parents) != 1:
            break
        node = parents[0]
    return (*names, type(node).__name__), node
