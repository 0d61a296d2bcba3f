"""Reads autograd graphs, bounded in depth, nodes and time, without unpacking or keeping anything."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import Any, NamedTuple

import torch

from torch_inspector.observe import as_torch, others, private
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_values
from torch_inspector.observe.told_shapes import note_shapes

# About 3 µs a node: 6 ms for one look.
NODE_LIMIT = 2_000
# Read nodes of graphs that hang together from step to step stay alive with them and are freed by recursion.
# Together they must stay well below the 50,000 at which that overflows the stack.
CHAIN_LIMIT = 20_000
# Nodes of one sum that are followed. They are read besides those of a walk, so they must be few.
LINKS = 500
_CLOCK_EVERY = 64
# Roots of one walk that its token is tied to.
_ROOTS = 64
# Backward calls that are remembered: then every other one is forgotten, which makes steps look longer, never shorter.
_MARKS = 4_096
# A total is scaled by a weight, a batch size, a count; more are not followed, for each node read has its price.
_SCALED = 3
_JOINS = ("CatBackward0", "StackBackward0")
_HALF = frozenset((torch.float16, torch.bfloat16))
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
_SCALINGS = ("MulBackward0", "DivBackward0")


class _Token:
    """Lives as long as the graph that it is tied to."""

    __slots__ = ("__weakref__",)


@dataclass
class Walk:
    """What one look at a graph brought. Holds nodes: drop it before the user's code goes on."""

    nodes: dict[int, Node] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    leaf_keys: set[int] = field(default_factory=set)
    leaf_storages: set[int] = field(default_factory=set)
    leaf_nbytes: int = 0
    half_storages: set[int] = field(default_factory=set)
    """Storages of 16-bit floating-point numbers, also those of leaves."""
    storages: dict[int, int] = field(default_factory=dict)
    freed_count: int = 0
    """Saved values that are not there: let go by backward, or never needed."""
    live_count: int = 0
    """Saved values that are there, single numbers left out: a factor is kept for good, and tells nothing."""
    complete: bool = True
    deepest: Node = None
    """The oldest node that was read."""
    deepest_number: int = 0
    lowest: int = 0
    """Number below which nodes were seen, but nothing behind them."""
    used: dict[int, int] = field(default_factory=dict)
    """Number of the newest node that takes a leaf, by identity of the node of the leaf."""

    def saved_nbytes(self, held: set[int] = frozenset()) -> int:  # type: ignore[assignment]
        """Bytes kept for backward, leaves and the storages in `held` left out, each storage once."""
        return sum(n for key, n in self.storages.items() if key not in self.leaf_storages and key not in held)

    @cached_property
    def by_kind(self) -> dict[str, list[Node]]:
        """The nodes by the name of their operation. Ask only when the walk is over."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            found.setdefault(type(node).__name__, []).append(node)
        return found

    def uses(self) -> dict[int, int]:
        """Number of the newest operation on each leaf, by its key: when the pass took its values the last time."""
        known = ((self.nodes[one], number) for one, number in self.used.items() if one in self.nodes)
        return {id(node.variable): number for node, number in known}

    def half_nbytes(self) -> int:
        """The part of that in numbers of 16 bits; 0 if a leaf has such numbers too."""
        own = self.half_storages
        return 0 if own & self.leaf_storages else sum(n for key, n in self.storages.items() if key in own)


@dataclass
class GraphReader:
    """Walks graphs and remembers how much of long-lived ones it has touched."""

    newest: int = -1
    """Number of the newest node read so far."""
    tokens: list[tuple[weakref.ref[_Token], int]] = field(default_factory=list)
    """For each walk, something that lives as long as its graph does, and how many nodes were read."""
    marks: list[int] = field(default_factory=list)
    """How many nodes there were at each backward call so far."""

    def mark(self) -> None:
        """Notes that a backward call begins: about 0.1 µs, for it is noted each time."""
        self.marks.append(private.sequence_number())
        if len(self.marks) > _MARKS:
            del self.marks[::2]

    def steps(self, numbers: Iterable[int]) -> int:
        """In how many stretches between backward calls the nodes of these numbers were made."""
        return len({bisect_right(self.marks, number) for number in numbers})

    def walk(self, roots: Iterable[Node], deadline: float, limit: int = NODE_LIMIT) -> Walk | None:
        """Reads the graph behind some nodes.

        Args:
            roots: Values of `grad_fn`.
            deadline: `thread_time()` time at which to stop.
            limit: Most nodes to read.

        Returns:
            What was seen, or None if looking is not safe now.
        """
        if self.alive() > CHAIN_LIMIT or others.may_train():
            return None
        walk, before = Walk(), self.newest
        stack = sorted(roots, key=private.node_number)
        if not stack:
            return walk
        ends = stack[-_ROOTS:]
        lowest = walk.lowest = private.node_number(stack[-1]) - private.deep_walk_limit()
        while stack:
            if len(walk.nodes) >= limit or (len(walk.nodes) % _CLOCK_EVERY == 0 and thread_time() > deadline):
                walk.complete = False
                break
            self._visit(stack.pop(), walk, stack, lowest)
        self._account(walk, before, ends)
        note_shapes(node for node in walk.nodes.values() if private.node_number(node) >= lowest)
        return walk

    def alive(self) -> int:
        """Nodes that were read and may still be there."""
        self.tokens = [(token, count) for token, count in self.tokens if token() is not None]
        return sum(count for _, count in self.tokens)

    def _visit(self, node: Node, walk: Walk, stack: list[Node], lowest: int) -> None:
        if id(node) in walk.nodes:
            return
        walk.nodes[id(node)] = node
        if private.is_leaf_node(node):
            _note_leaf(node, walk)
            return
        number = private.node_number(node)
        walk.numbers.add(number)
        if walk.deepest is None or number < walk.deepest_number:
            walk.deepest, walk.deepest_number = node, number
        _note_saved(node, walk)
        if number < lowest:
            walk.complete = False
            return
        for parent, _ in node.next_functions:
            if parent is None:
                continue
            if id(parent) not in walk.nodes:
                stack.append(parent)
            if private.is_leaf_node(parent) and number > walk.used.get(id(parent), -1):
                walk.used[id(parent)] = number

    def _account(self, walk: Walk, before: int, ends: list[Node]) -> None:
        """Ties a token to the roots and to the deepest node that was read: it is gone when all of them are."""
        if not walk.numbers:
            return
        self.newest = max(before, *walk.numbers)
        again = max(walk.numbers) <= before
        count = len(walk.numbers) if again else sum(number > before for number in walk.numbers)
        token = _Token()
        for node in (*ends, walk.deepest):
            private.tie(node, token)
        self.tokens.append((weakref.ref(token), count))


def _note_leaf(node: Node, walk: Walk) -> None:
    leaf = node.variable
    walk.leaf_keys.add(id(leaf))
    storage = private.storage_of(leaf)
    if storage and storage[0] not in walk.leaf_storages:
        walk.leaf_storages.add(storage[0])
        walk.leaf_nbytes += storage[1]


def _note_saved(node: Node, walk: Walk) -> None:
    for saved, _ in saved_values(node):
        if saved is None:
            walk.freed_count += 1
            continue
        is_tensor = issubclass(type(saved), torch.Tensor)
        walk.live_count += not (is_tensor and as_torch.dim(saved) == 0)
        if is_tensor:
            storage = private.storage_of(saved)
            if storage:
                walk.storages[storage[0]] = storage[1]
                if _dtype_of(saved) in _HALF:
                    walk.half_storages.add(storage[0])


def pass_count(walk: Walk, parts: Collection[int], links: frozenset[int] = frozenset()) -> int:
    """Into how many graphs that share no node some things fall: forward passes of several batches.

    Where the walk ended early, what was seen stands for the rest.

    Args:
        walk: The look at all of them.
        parts: Numbers of their newest nodes.
        links: Numbers of nodes that only join them: additions of a total.
    """
    oldest = _oldest_parents(walk, links)
    seen = sum(number in oldest for number in parts)
    passes = _passes(oldest, frozenset(parts))
    return passes if walk.complete or not seen else passes * len(parts) // seen


def _oldest_parents(walk: Walk, links: frozenset[int]) -> dict[int, int]:
    """Number of each node that was read, and of the oldest node it was computed from; itself if only from leaves."""
    oldest = {}
    for node in walk.nodes.values():
        number = private.node_number(node)
        if number in walk.numbers and number >= walk.lowest and number not in links:
            oldest[number] = min([number, *map(private.node_number, parents_of(node))])
    return oldest


def _passes(oldest: dict[int, int], parts: frozenset[int]) -> int:
    """Nodes of one pass have numbers in a row: it ends where no newer node has a parent that is as old."""
    passes, reach, counts = 0, -1, False
    for number in sorted(oldest, reverse=True):
        if number < reach or reach < 0:
            reach, counts = number, True
        if counts and number in parts:
            passes, counts = passes + 1, False
        reach = min(reach, oldest[number])
    return passes


class Chain(NamedTuple):
    """Parts that were joined to one tensor."""

    length: int
    """Additions; 0 for parts joined by `cat` or `stack`."""
    links: frozenset[int]
    """Numbers of the nodes that join."""
    parts: tuple[int, ...]
    """Numbers of the nodes that are joined."""


def chain_of(root: Node) -> Chain:
    """The chain of additions that ends in a node: 40 links after `total += loss` in 40 steps.

    Of two things added the older one is the total so far, scaled or not: `0.9 * smooth + 0.1 * loss`.
    """
    number = private.node_number(root)
    if type(root).__name__ in _JOINS:
        return Chain(0, frozenset([number]), tuple(private.node_number(parent) for parent in parents_of(root)))
    lowest, length, links, parts = number - private.deep_walk_limit(), 0, set[int](), list[int]()
    node, scalings = _unscaled(root)
    while type(node).__name__ == "AddBackward0" and private.node_number(node) >= lowest and len(links) < LINKS:
        length += 1
        links.update((private.node_number(node), *scalings))
        first, *others = sorted(map(_unscaled, parents_of(node)), key=lambda found: private.node_number(found[0]))
        node, scalings = first
        parts.extend(private.node_number(other) for other, _ in others)
    return Chain(length, frozenset(links), (*parts, private.node_number(node)))


def parents_of(node: Node) -> list[Node]:
    """The nodes that a node hands gradients to."""
    return [parent for parent, _ in node.next_functions if parent is not None]


def _unscaled(node: Node) -> tuple[Node, tuple[int, ...]]:
    """The node below the last few multiplications by and divisions through plain numbers, and their numbers."""
    numbers: tuple[int, ...] = ()
    while type(node).__name__ in _SCALINGS and len(numbers) < _SCALED and len(parents := parents_of(node)) == 1:
        numbers = (*numbers, private.node_number(node))
        node = parents[0]
    return node, numbers
