"""By what the parts of a loss are multiplied, where it is a sum of losses that average: 0.5 and 0.5."""

from __future__ import annotations

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

# Parts of a loss, and scalings of one.
_PARTS, _SCALINGS = 8, 4
_NEUTRAL = frozenset(["ToCopyBackward0", "SqueezeBackward0", "CloneBackward0"])


def factors_of(node: Node) -> tuple[float, ...]:
    """The factor of each part that a sum adds up; empty if one of them is no mean, or its factor is not known."""
    found: list[float] = []
    waiting = [node] if type(node).__name__ == "AddBackward0" else []
    while waiting:
        here = waiting.pop()
        if type(here).__name__ == "AddBackward0":
            parents = [parent for parent, _ in here.next_functions if parent is not None]
            waiting += parents if here._saved_alpha == 1 else ()
            known = here._saved_alpha == 1
        else:
            factor = _factor(here)
            known = factor is not None
            found += [factor] if factor is not None else []
        if not known or len(found) + len(waiting) > _PARTS:
            return ()
    return tuple(found) if len(found) > 1 else ()


def _factor(node: Node) -> float | None:
    """What a mean is multiplied by on its way up to here."""
    factor = 1.0
    for _ in range(_SCALINGS):
        if private.averages(node) or is_mean_of_samples(node):
            return factor
        times = _number(node)
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if times is None or len(parents) != 1:
            return None
        factor, node = factor * times, parents[0]
    return None


def _number(node: Node) -> float | None:
    """The number that a scaling multiplies by; None for a tensor that is learnt, and for another operation."""
    kind = type(node).__name__
    if kind in _NEUTRAL:
        return 1.0
    if kind not in ("MulBackward0", "DivBackward0"):
        return None
    first = node.next_functions[0][0] is not None
    number = saved_value(node, "other" if first else "self") if first or kind == "MulBackward0" else None
    if type(number) is not torch.Tensor or number.numel() != 1 or number.is_complex() or not is_in_memory(number):
        return None
    value = float(number.detach().item())
    return value if kind == "MulBackward0" else 1 / value if value else None


def is_mean_of_samples(node: Node) -> bool:
    """True if a division makes a mean of a sum by the number of samples in it, as `reduction="batchmean"` does."""
    below = next((parent for parent, _ in node.next_functions if parent is not None), None)
    if type(node).__name__ != "DivBackward0" or type(below).__name__ != "SumBackward0" or below is None:
        return False
    shape, other = input_shape(below), saved_value(node, "other")
    known = type(other) is torch.Tensor and other.is_cpu and other.numel() == 1
    return known and len(shape) > 1 and shape[0] > 1 and float(other.detach()) == shape[0]


def input_shape(node: Node) -> Shape:
    """Shape of the first operand of an operation that has history; empty if it is not known."""
    given = next(((parent, result) for parent, result in node.next_functions if parent is not None), None)
    return (private.output_shape(*given) if given is not None else None) or ()
