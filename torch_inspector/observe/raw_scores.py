"""Whether what a loss over classes was given are raw scores: what layers made, and no logarithm after it."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds, private
from torch_inspector.observe.consumers import Consumers
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.opposed import Opposed, Steps
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.softmax import parents_of

# Operations that mix features with parameters: a row of what they make belongs to one sample.
LINEAR = frozenset(["AddmmBackward0", "MmBackward0", "LinearBackward0", "MkldnnLinearBackward0"])
_LAYERS = LINEAR | {"ConvolutionBackward0"}
_LOGS = frozenset(["LogSoftmaxBackward0", "LogBackward0", "LogSigmoidBackward0"])
# Activations that a layer may end with, norms of features, and a scale.
_SHAPED = frozenset(
    f"{name}Backward{n}"
    for name in (
        "Elu", "Relu", "LeakyRelu", "Prelu", "PreluKernel", "Gelu", "Silu", "Mish", "Tanh", "Hardtanh", "Hardswish",
        "Softplus", "NativeBatchNorm", "CudnnBatchNorm", "NativeLayerNorm", "NativeGroupNorm", "Mul", "Div",
    )
    for n in range(2)
)  # fmt: skip
_FAR = 12
# About a millisecond.
_ELEMENTS = 300_000
# What rounding may leave of the logarithm of 1.
_ROUNDING = 1e-2


def opposed_in(by_kind: dict[str, list[Node]], consumers: Consumers, steps: Steps) -> Opposed:
    """What tells of the layers of a graph whether their scores have another way into the loss; made once per look."""
    return Opposed(_LAYERS, lambda node: _is_shaped(node) or steps(node), by_kind, consumers)


def is_raw(loss: Node, end: Node, steps: Steps, by_kind: dict[str, list[Node]], opposed: Opposed) -> bool:
    """True if a layer made what the loss was given, and nothing else is computed of it that may hold against the loss.

    Past an activation, a norm or a scale only if it has numbers above 0, as no logarithm of a probability has, and no
    `logsumexp` is taken, which a cross-entropy by hand adds to the loss.

    Args:
        loss: The node of the loss.
        end: What made its input, past what hands it on.
        steps: What hands it on.
        by_kind: The nodes of the whole graph by the names of their classes.
        opposed: Whether scores have another way into the loss.
    """
    layer = _layer_below(end, steps)
    if layer is None or any(is_logarithm(parent, steps) for parent in parents_of(layer)):
        return False
    if layer is not end and ("LogsumexpBackward0" in by_kind or not _has_positive(saved_value(loss, "self"))):
        return False
    return not opposed.is_opposed(layer)


def _layer_below(node: Node, steps: Steps) -> Node | None:
    """The layer that made the scores, if they are no part or sum of something else."""
    here: Node | None = node
    for _ in range(_FAR):
        if here is None or not (_is_shaped(here) or (here is not node and steps(here))):
            break
        below = [parent for parent in parents_of(here) if parent is not None and not private.is_leaf_node(parent)]
        here = below[0] if len(below) == 1 or (below and steps(here)) else None
    return here if type(here).__name__ in _LAYERS else None


def _is_shaped(node: Node) -> bool:
    return type(node).__name__ in _SHAPED


def is_logarithm(node: Node | None, steps: Steps) -> bool:
    """True for logarithms of probabilities, moved or not: a product may put the classes into another order."""
    for _ in range(_FAR):
        if node is None or type(node).__name__ in _LOGS or not steps(node):
            break
        node = parents_of(node)[0]
    name = type(node).__name__
    return name in _LOGS or (name == "SubBackward0" and any(_is_total(one) for one in parents_of(node)))


def _is_total(node: Node | None) -> bool:
    return type(node).__name__ == "LogsumexpBackward0"


def _has_positive(given: Any) -> bool:
    if not kinds.is_one_of(given, (torch.Tensor, torch.nn.Parameter)) or not is_in_memory(given):
        return False
    if not 0 < as_torch.numel(given) <= _ELEMENTS:
        return False
    return bool(as_torch.item(as_torch.detach(given).amax()) > _ROUNDING)
