"""Large leaves of which a graph used a few rows only: their gradient is dense all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torch_inspector.facts import TableFact
from torch_inspector.observe import layers, private
from torch_inspector.observe.consumers import Consumers, number_of
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

# Smaller gradients are made and forgotten without anybody noticing.
_LEAST_NBYTES = 1 << 20
# Operations that look up rows by number, and how the node keeps the numbers.
_LOOKUPS = frozenset(["EmbeddingBackward0", "EmbeddingBagBackward0"])
# Operations that pick some elements, and write their gradient into zeros of the full size.
_PICKS = frozenset(
    ["IndexBackward0", "IndexSelectBackward0", "SelectBackward0", "GatherBackward0", "TakeBackward0",
     "MaskedSelectBackward0"]
)  # fmt: skip
# The mode of an `EmbeddingBag` that takes the largest value.
_MAX = 2
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def find_tables(walk: Walk, consumers: Consumers) -> tuple[TableFact, ...]:
    """Every large leaf that was used only by looking up or picking, with how much of it can have been used."""
    leaves: dict[int, Node] = {}
    for kind in sorted((_LOOKUPS | _PICKS) & walk.by_kind.keys()) if walk.complete else ():
        for node in walk.by_kind[kind]:
            parent = node.next_functions[0][0]
            if parent is not None and private.is_leaf_node(parent):
                leaves[id(parent)] = parent
    return tuple(fact for leaf in leaves.values() for fact in _fact(leaf, consumers))


def _fact(leaf: Node, consumers: Consumers) -> Iterator[TableFact]:
    table: Any = leaf.variable
    if not is_one_of(table, _PLAIN) or layers.nbytes_of(table) < _LEAST_NBYTES or table.dim() == 0:
        return
    shape = tuple(table.shape)
    users = consumers.of(leaf)
    used = [_used_by(node, number_of(shape[1:])) for node in users]
    known = [count for count in used if count is not None]
    if len(known) == len(users):
        kinds = tuple(dict.fromkeys(type(node).__name__ for node in users))
        yield TableFact(
            id(table), shape, layers.nbytes_of(table), layers.number_of(table), sum(known), kinds, _settings(users)
        )


def _settings(users: list[Node]) -> tuple[str, ...]:
    """What the lookups were told that sparse gradients do not have."""
    lookups = [node for node in users if type(node).__name__ in _LOOKUPS]
    most = any(getattr(node, "_saved_mode", 0) == _MAX for node in lookups)
    scaled = any(node._saved_scale_grad_by_freq for node in lookups)
    return ('mode="max"',) * most + ("scale_grad_by_freq=True",) * scaled


def _used_by(node: Node, row: int) -> int | None:
    """Elements that an operation may have used; None if it is another one, is sparse, or does not tell."""
    kind = type(node).__name__
    if kind in _PICKS:
        made = private.output_shape(node)
        return None if made is None or getattr(node, "_saved_sparse_grad", False) else number_of(made)
    if kind not in _LOOKUPS or node._saved_sparse:
        return None
    numbers = saved_value(node, "indices")
    return layers.number_of(numbers) * row if is_one_of(numbers, _PLAIN) else None
