"""Reads autograd graphs, bounded in depth, nodes and time, without unpacking or keeping anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter

import torch

from torch_inspector.observe import private
from torch_inspector.observe.private import Node

# About 3 µs a node: 6 ms for one look.
NODE_LIMIT = 2_000
# Read nodes of graphs that hang together from step to step stay alive with them and are freed by recursion.
# Together they must stay well below the 50,000 at which that overflows the stack.
CHAIN_LIMIT = 20_000
_CLOCK_EVERY = 64


@dataclass
class Walk:
    """What one look at a graph brought. Holds nodes: drop it before the user's code goes on."""

    nodes: dict[int, Node] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    leaf_keys: set[int] = field(default_factory=set)
    leaf_storages: set[int] = field(default_factory=set)
    storages: dict[int, int] = field(default_factory=dict)
    freed_count: int = 0
    """Saved values that are not there: let go by backward, or never needed."""
    live_count: int = 0
    """Saved values that are there."""
    complete: bool = True

    def saved_nbytes(self, held: set[int] = frozenset()) -> int:  # type: ignore[assignment]
        """Bytes kept for backward, leaves and the storages in `held` left out, each storage once."""
        return sum(n for key, n in self.storages.items() if key not in self.leaf_storages and key not in held)


@dataclass
class GraphReader:
    """Walks graphs and remembers how much of long-lived ones it has touched."""

    newest: int = -1
    """Number of the newest node read so far."""
    chained: int = 0
    """Nodes read in graphs that reach back to nodes read before."""

    def walk(self, roots: Iterable[Node], deadline: float, limit: int = NODE_LIMIT) -> Walk | None:
        """Reads the graph behind some nodes.

        Args:
            roots: Values of `grad_fn`.
            deadline: `perf_counter()` time at which to stop.
            limit: Most nodes to read.

        Returns:
            What was seen, or None if looking is not safe now.
        """
        if self.chained > CHAIN_LIMIT or private.backward_elsewhere():
            return None
        walk, before = Walk(), self.newest
        stack = sorted(roots, key=private.node_number)
        if not stack:
            return walk
        lowest = private.node_number(stack[-1]) - private.deep_walk_limit()
        while stack:
            if len(walk.nodes) >= limit or (len(walk.nodes) % _CLOCK_EVERY == 0 and perf_counter() > deadline):
                walk.complete = False
                break
            self._visit(stack.pop(), walk, stack, lowest)
        self._account(walk, before)
        return walk

    def _visit(self, node: Node, walk: Walk, stack: list[Node], lowest: int) -> None:
        if id(node) in walk.nodes:
            return
        walk.nodes[id(node)] = node
        if private.is_leaf_node(node):
            _note_leaf(node, walk)
            return
        number = private.node_number(node)
        walk.numbers.add(number)
        _note_saved(node, walk)
        if number < lowest:
            walk.complete = False
            return
        stack.extend(parent for parent, _ in node.next_functions if parent is not None and id(parent) not in walk.nodes)

    def _account(self, walk: Walk, before: int) -> None:
        if not walk.numbers:
            return
        self.newest = max(before, *walk.numbers)
        if min(walk.numbers) <= before:
            self.chained += sum(number > before for number in walk.numbers)


def _note_leaf(node: Node, walk: Walk) -> None:
    leaf = node.variable
    walk.leaf_keys.add(id(leaf))
    storage = private.storage_of(leaf)
    if storage:
        walk.leaf_storages.add(storage[0])


def _note_saved(node: Node, walk: Walk) -> None:
    for saved in private.saved_tensors(node):
        if saved is None:
            walk.freed_count += 1
            continue
        walk.live_count += 1
        if issubclass(type(saved), torch.Tensor):
            storage = private.storage_of(saved)
            if storage:
                walk.storages[storage[0]] = storage[1]


def sum_length(root: Node) -> int:
    """Links of the chain of additions that ends in a node: 40 after `total += loss` in 40 steps."""
    length, node = 0, root
    lowest = private.node_number(root) - private.deep_walk_limit()
    while type(node).__name__ == "AddBackward0" and private.node_number(node) >= lowest:
        length += 1
        node = node.next_functions[0][0]
        if length >= NODE_LIMIT:
            break
    return length
