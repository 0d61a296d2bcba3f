"""Probabilities made of probabilities: weights of experts times what each expert says, sums and averages of them."""

from __future__ import annotations

from torch_inspector.observe.private import Node
from torch_inspector.observe.softmax import IN_PLACE, MOVES, parents_of

_MIXES = frozenset(["MulBackward0", "BmmBackward0", "MmBackward0", "AddBackward0", "DivBackward0"])
_HANDED_ON = (IN_PLACE | MOVES | {"ExpandBackward0", "StackBackward0", "CatBackward0"}) - {"CopySlices"}
_MOST = 200


def is_mixture(node: Node) -> bool:
    """True for sums and products of softmaxes and of nothing else: no number is below zero, and none is a logarithm."""
    return type(node).__name__ in _MIXES and _leads_to_softmaxes(node)


def _leads_to_softmaxes(top: Node) -> bool:
    waiting, seen = [top], set[int]()
    while waiting:
        node = waiting.pop()
        name, parents = type(node).__name__, parents_of(node)
        if id(node) in seen or name == "SoftmaxBackward0":
            continue
        seen.add(id(node))
        some = [one for one in parents if one is not None]
        alone = len(some) < len(parents)
        # Of a factor without history nothing is known; a divisor is a count, or a sum of weights.
        known = name in _HANDED_ON or name == "AddBackward0" or (name == "DivBackward0" and alone)
        if not some or len(seen) > _MOST or not (known or (name in _MIXES and name != "DivBackward0" and not alone)):
            return False
        waiting.extend(some)
    return True
