"""Functions whose slope is 0 everywhere, `round` and its kin, on the only way from parameters to a loss."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact
from torch_inspector.observe import private
from torch_inspector.observe.graph import Walk, parents_of

FLAT = "flat-function"

_FLAT = {
    "RoundBackward0": "round",
    "RoundBackward1": "round",
    "SignBackward0": "sign",
    "FloorBackward0": "floor",
    "CeilBackward0": "ceil",
    "TruncBackward0": "trunc",
}


def flat_ways(walk: Walk) -> Iterator[PatternFact]:
    """The parameters that only such functions lead to: their gradients are zeros, whatever the loss is."""
    kinds = [kind for kind in _FLAT if kind in walk.by_kind]
    if not kinds or not walk.complete:
        return
    flat = {id(node) for kind in kinds for node in walk.by_kind[kind]}
    lost = walk.leaf_keys - _leaves_beside(walk, flat)
    if lost:
        yield PatternFact(FLAT, tuple(dict.fromkeys(_FLAT[kind] for kind in kinds)), keys=frozenset(lost))


def _leaves_beside(walk: Walk, flat: set[int]) -> set[int]:
    """Leaves that a way leads to on which no such function stands."""
    used = {id(parent) for node in walk.nodes.values() for parent, _ in node.next_functions}
    stack = [node for key, node in walk.nodes.items() if key not in used]
    seen, leaves = set[int](), set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen or id(node) in flat:
            continue
        seen.add(id(node))
        if private.is_leaf_node(node):
            leaves.add(id(node.variable))
        stack.extend(parents_of(node))
    return leaves
