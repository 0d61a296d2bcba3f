"""Sums over what each sample has, whose weights (samples, steps) come from a softmax along the samples.

As `torch.bmm(a[:, None], h)`, `(a.unsqueeze(-1) * h).sum(1)` or `einsum("bt,btd->bd", a, h)` with `a = softmax(…, 0)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.observe import private
from torch_inspector.observe.class_axis import axis_below, is_share
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.own_rows import has_own_rows
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import axis_of, parents_of

# What leaves every weight where it is.
_STAYS = frozenset(["ExpandBackward0", "NativeDropoutBackward0", "MulBackward0", "CloneBackward0"])
# What scores go through before the softmax: a scale, a mask, an axis more or less.
_SCORED = frozenset(
    f"{name}Backward{n}"
    for name in (
        "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Mul", "Div", "Add", "MaskedFill",
    )
    for n in range(2)
)  # fmt: skip
_LAYERS = frozenset(
    ["AddmmBackward0", "MmBackward0", "LinearBackward0", "MkldnnLinearBackward0", "BmmBackward0", "MvBackward0"]
)
_TOTALS = frozenset(["SumBackward0", "SumBackward1", "MeanBackward0", "MeanBackward1"])
_FAR, _AXES = 12, 2
_RECURRENT = ("StackBackward0", "CudnnRnnBackward0", "MkldnnRnnLayerBackward0", "MiopenRnnBackward0")


def weighed_across(walk: Walk) -> Iterator[Node]:
    """Softmaxes of (samples, steps) along the samples, of scores of a layer, that weigh the steps of each sample."""
    softmaxes = walk.by_kind.get("SoftmaxBackward0", ())
    if any(_is_along_samples(node) for node in softmaxes) and not is_time_first(walk):
        found = [*_in_products(walk), *_in_sums(walk)]
        yield from {id(node): node for node in found if _is_along_samples(node) and _is_scored(node)}.values()


def is_time_first(walk: Walk) -> bool:
    """True if a recurrent layer, or a list of steps, gives (time, batch, …): its first axis is no axis of samples."""
    made = [node for kind in _RECURRENT for node in walk.by_kind.get(kind, ())]
    steps = [node for node in made if type(node).__name__ != "StackBackward0" or node._saved_dim == 0]
    consumers = Consumers(walk) if steps else None
    # With `batch_first` the axes are swapped right after; of the state of layers one is selected.
    return consumers is not None and any(
        not type(one).__name__.startswith(("Transpose", "Permute", "Select"))
        for node in steps
        for one in consumers.of(node)
    )


def _in_products(walk: Walk) -> Iterator[Node]:
    """Batches of matrices: the first axis of the weights stays, the one that the product adds up is another."""
    for node in walk.by_kind.get("BmmBackward0", ()):
        for place, summed in enumerate((2, 1)):
            yield from _weights(node, place, summed)


def _in_sums(walk: Walk) -> Iterator[Node]:
    consumers = Consumers(walk)
    for node in walk.by_kind.get("SumBackward1", ()):
        product, axes = parents_of(node)[0], node._saved_dim
        shape = private.output_shape(product) if type(product).__name__ == "MulBackward0" else None
        # A sum of the sums: then the weights may well be those of one sequence.
        if shape is None or len(axes) != 1 or any(type(one).__name__ in _TOTALS for one in consumers.of(node)):
            continue
        summed = int(axes[0] - 2**64 if axes[0] >= 2**63 else axes[0]) % len(shape)
        operands = parents_of(product) if summed else []
        # Rows and columns of one table, as of what is to be matched.
        for place, operand in enumerate(operands) if not all(is_share(one) for one in operands) else ():
            if operand is not None and len(private.output_shape(operand) or ()) == len(shape):
                yield from _weights(product, place, summed)


def _weights(product: Node, place: int, summed: int) -> Iterator[Node]:
    """The softmax behind an operand, if its first axis is the one that is kept and its second the one summed up.

    What it is multiplied with has to be something of each sample.
    """
    node, below, factors = parents_of(product)[place], (0, summed), [(product, 1 - place, (0, summed))]
    for _ in range(_FAR):
        if node is None or type(node).__name__ == "SoftmaxBackward0":
            break
        some = [number for number, one in enumerate(parents_of(node)) if one is not None]
        parent = parents_of(node)[some[0]] if some else None
        axes = [_axis(node, parent, axis) for axis in below] if parent is not None else [None]
        if None in axes:
            return
        factors += [(node, 1 - some[0], below)] if type(node).__name__ == "MulBackward0" else []
        node, below = parent, (axes[0] or 0, axes[1] or 0)
    if node is None or type(node).__name__ != "SoftmaxBackward0" or below != (0, 1):
        return
    if any(has_own_rows(one, other, axes[:1], axes[1]) for one, other, axes in factors):
        yield node


def _axis(node: Node, parent: Node, axis: int) -> int | None:
    same = private.output_shape(node) == private.output_shape(parent)
    return axis if type(node).__name__ in _STAYS and same else axis_below(node, parent, axis)


def _is_along_samples(node: Node) -> bool:
    shape = private.output_shape(node)
    plain = shape is not None and shape[_AXES:] in ((), (1,)) and len(shape) >= _AXES and min(shape[:_AXES]) > 1
    return plain and axis_of(node) == 0


def _is_scored(softmax: Node) -> bool:
    here = parents_of(softmax)[0]
    for _ in range(_FAR):
        if here is None or type(here).__name__ not in _SCORED:
            break
        here = next((parent for parent in parents_of(here) if parent is not None), None)
    return type(here).__name__ in _LAYERS
