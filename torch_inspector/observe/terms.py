"""The weights of the means that a loss adds up: 0.3 and 0.7 of `0.3 * mse_loss(…) + 0.7 * cross_entropy(…)`."""

from __future__ import annotations

import torch

from torch_inspector.observe import as_torch, private
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

# Sums, products and terms that are looked at.
_NODES = 24
_SCALINGS, _MEANS = ("MulBackward0", "DivBackward0"), ("MeanBackward0", "MeanBackward1")
# What a mean is looked through for products, and how far.
_PASSED = frozenset(
    f"{name}Backward0" for name in ("Add", "Sub", "Neg", "View", "UnsafeView", "ReshapeAlias", "Squeeze", "ToCopy")
)
_INSIDE = 8


def weights_of(root: Node) -> tuple[float | None, ...]:
    """One number for each term of a sum of means, None for one without a factor; empty where that is not known."""
    if type(root).__name__ != "AddBackward0":
        return ()
    waiting, found, count = list[tuple[Node, float | None]]([(root, None)]), list[float | None](), 0
    while waiting:
        node, weight = waiting.pop()
        count += 1
        kind, parents = type(node).__name__, [one for one, _ in node.next_functions if one is not None]
        if kind == "AddBackward0" and count <= _NODES and node._saved_alpha == 1:
            waiting += [(one, weight) for one in parents]
        elif kind in ("MulBackward0", "DivBackward0") and count <= _NODES and len(parents) == 1:
            factor = number_of(node)
            if not factor:
                return ()
            own = 1.0 if weight is None else weight
            waiting.append((parents[0], own * factor if kind == "MulBackward0" else own / factor))
        elif private.averages(node) and not scaling_inside(node):
            found.append(weight)
        else:
            return ()
    return tuple(found)


def scaling_inside(node: Node, *, by_numbers: bool = False) -> str:
    """What a mean is taken of, if that is a product with what has no history, or a quotient: `(losses / every).mean()`.

    Args:
        node: The mean.
        by_numbers: Count products with one number only.
    """
    waiting = [node] if type(node).__name__ in _MEANS else []
    for _ in range(_INSIDE):
        parents = [one for one, _ in waiting.pop().next_functions if one is not None] if waiting else []
        for one in parents:
            scales = type(one).__name__ in _SCALINGS and len([p for p, _ in one.next_functions if p is not None]) == 1
            if scales and (not by_numbers or number_of(one)):
                return type(one).__name__
            if scales or type(one).__name__ in _PASSED:
                waiting.append(one)
    return ""


def number_of(node: Node) -> float | None:
    """The plain number that a node multiplies with or divides by; None where it cannot be read."""
    other = saved_value(node, "other")
    known = type(other) is torch.Tensor and as_torch.numel(other) == 1 and is_in_memory(other)
    return float(as_torch.detach(other)) if known else None
