"""Attention whose weights sum to 1 along the batch: `torch.softmax(q @ k.transpose(1, 2), dim=0) @ v`."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.observe import private
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import axis_of, parents_of

# What `@` and dropout put between the weights and the product with the values.
_HANDED_ON = frozenset(
    f"{name}Backward0" for name in ("View", "UnsafeView", "ReshapeAlias", "Expand", "Clone", "NativeDropout", "Mul")
)
# What scores go through before the softmax: a scale, a mask, a bias of positions.
SCORED = _HANDED_ON | {f"{name}Backward0" for name in ("Div", "Add", "MaskedFill", "Where")}
_FAR = 8
# A batch, or a batch of heads, of square tables.
_AXES = 3


def across_samples(walk: Walk) -> Iterator[Node]:
    """Softmaxes along the first axis, of scores that were computed for each sample and weigh what it has."""
    for node in walk.by_kind.get("BmmBackward0", ()):
        softmax = down(node, _HANDED_ON)
        shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
        if softmax is None or shape is None or len(shape) < _AXES or axis_of(softmax) != 0 or shape[0] < 2:  # noqa: PLR2004
            continue
        if type(down(softmax, SCORED)).__name__ == "BmmBackward0":
            yield softmax


def down(node: Node, passes: frozenset[str]) -> Node | None:
    """What made the first operand of a node, past what only hands it on."""
    here = parents_of(node)[0]
    for _ in range(_FAR):
        if here is None or type(here).__name__ not in passes:
            break
        here = next((parent for parent in parents_of(here) if parent is not None), None)
    return here
