"""Attention whose weights sum to 1 along the batch.

Of each with each, `torch.softmax(q @ k.transpose(1, 2), dim=0) @ v`, or of the steps of each sample,
`(torch.softmax(score(h), dim=0) * h).sum(1)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import axis_of, parents_of

# What `@` and dropout put between the weights and the product with the values.
_HANDED_ON = frozenset(
    f"{name}Backward0" for name in ("View", "UnsafeView", "ReshapeAlias", "Expand", "Clone", "NativeDropout", "Mul")
)
# What scores go through before the softmax: a scale, a mask, a bias of positions.
_SCORED = _HANDED_ON | {f"{name}Backward0" for name in ("Div", "Add", "MaskedFill", "Where")}
_RECURRENT = ("StackBackward0", "CudnnRnnBackward0", "MkldnnRnnLayerBackward0", "MiopenRnnBackward0")
_FAR = 8
# A batch, or a batch of heads, of square tables; or (samples, steps, 1).
_AXES = 3
_LINEAR = frozenset(["AddmmBackward0", "MmBackward0", "LinearBackward0", "MkldnnLinearBackward0"])


def across_samples(walk: Walk) -> Iterator[Node]:
    """Softmaxes along the first axis, of scores that were computed for each sample and weigh what it has."""
    for node in walk.by_kind.get("BmmBackward0", ()):
        softmax = _down(node, _HANDED_ON)
        shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
        if softmax is None or shape is None or len(shape) < _AXES or axis_of(softmax) != 0 or shape[0] < 2:  # noqa: PLR2004
            continue
        if type(_down(softmax, _SCORED)).__name__ == "BmmBackward0":
            yield softmax
    if not is_time_first(walk):
        yield from (node for node in pooled_steps(walk) if axis_of(node) == 0)


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


def pooled_steps(walk: Walk) -> Iterator[Node]:
    """Softmaxes of (samples, steps, 1), the scores that a layer gives each step, where the steps are then added up."""
    for node in walk.by_kind.get("SumBackward1", ()):
        product, axes = parents_of(node)[0], node._saved_dim
        if type(product).__name__ != "MulBackward0" or product is None or len(axes) != 1:
            continue
        for softmax in parents_of(product) if int(axes[0]) in (1, 2**64 - 2) else ():
            shape = private.output_shape(softmax) if type(softmax).__name__ == "SoftmaxBackward0" else None
            steps = shape is not None and len(shape) == _AXES and min(shape[:2]) > 1 and shape[2] == 1
            if softmax is not None and steps and type(_down(softmax, _SCORED)).__name__ in _LINEAR:
                yield softmax


def _down(node: Node, passes: frozenset[str]) -> Node | None:
    """What made the first operand of a node, past what only hands it on."""
    here = parents_of(node)[0]
    for _ in range(_FAR):
        if here is None or type(here).__name__ not in passes:
            break
        here = next((parent for parent in parents_of(here) if parent is not None), None)
    return here
