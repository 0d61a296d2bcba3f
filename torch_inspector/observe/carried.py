"""Leaves that no optimizer holds, that were moved since the last backward call, and that still have their gradient.

That is what a step written by hand leaves which clears nothing. Looked at with the first graphs of a line, a few
values of a few leaves, on the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.reach import gradients_readable
from torch_inspector.observe.sampled import some_values

if TYPE_CHECKING:
    from torch_inspector.observe.graph import Walk
    from torch_inspector.observe.sampled import Values

# Leaves that are looked at in one graph, the first of which decides little: one of them is enough.
_LEAVES = 4

Known = dict[int, tuple["Values", "Values"]]
"""Some values of a leaf and of its gradient when a backward call began, by address of the leaf."""


def carried(walk: Walk, held: frozenset[int], known: Known) -> int:
    """How many such leaves a graph has; what they hold now is noted for the next call."""
    leaves = (node.variable for node in walk.by_kind.get("AccumulateGrad", ()))
    free = [one for one in leaves if id(one) not in held and _is_plain(one)][:_LEAVES]
    if not free or not gradients_readable():
        return 0
    count = 0
    for leaf in free:
        before, now = known.get(id(leaf)), some_values(leaf)
        gradient = some_values(leaf.grad) if leaf.grad is not None else None
        known[id(leaf)] = (now, gradient)
        moved = before is not None and now is not None and before[0] is not None and before[0] != now
        count += moved and gradient is not None and any(gradient)
    return count


def _is_plain(leaf: Any) -> bool:
    return is_one_of(leaf, (torch.Tensor, torch.nn.Parameter)) and leaf.is_leaf and leaf.is_cpu
