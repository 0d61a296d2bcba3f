"""Counts what autograd graphs keep for backward, and nothing else does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch

from torch_inspector.observe import as_torch, others, private
from torch_inspector.observe.heap.account import ACTIVATION, LEAF, TENSOR, Account
from torch_inspector.observe.heap.search import Link
from torch_inspector.observe.saved import saved_values

_CLOCK_EVERY = 64
# Seconds between the switches of threads while a graph is read: no other thread may begin a backward pass.
_PATIENCE_S = 10.0
_GRAPH = " (its graph)"


class Graphs:
    """All graphs read by one look.

    Args:
        account: Where the bytes go.
        deadline: `perf_counter()` time at which to stop.
    """

    def __init__(self, account: Account, deadline: float) -> None:
        self._account = account
        self._deadline = deadline
        self._nodes: set[int] = set()
        self._kept: list[Any] = []
        self._packed: set[int] = set()
        self.packed: list[Link] = []
        """Objects that hooks and custom functions have stored in nodes, to be searched: they may hold tensors."""
        self.complete = True
        self.unread = False
        """True if another thread may begin a backward pass, so that nothing could be read."""
        self.cut_nodes = 0
        """Nodes below the depth to which a graph can be read safely, at least."""
        self._later: list[tuple[Any, str, str]] = []
        """Leaves and sparse results: asking for gradients and parts may let other threads run."""

    def read(self, roots: Iterable[tuple[Any, Any]], phase: str) -> None:
        """Reads graphs, the newest first.

        Args:
            roots: Nodes, each with the object that leads to it.
            phase: What the search is for.
        """
        fresh = [(node, holder) for node, holder in roots if id(node) not in self._nodes]
        fresh.sort(key=lambda pair: private.node_number(pair[0]), reverse=True)
        for node, holder in fresh:
            with _undisturbed():
                if others.may_train():
                    self.unread = True
                    return
                self._read_one(node, holder, phase)
            later, self._later = self._later, []
            for tensor, kind, how in later:
                self._account.tensor(tensor, kind, phase, holder, how)

    def take_packed(self) -> list[Link]:
        """What is to be searched, once."""
        packed, self.packed = self.packed, []
        return packed

    def own(self) -> set[int]:
        """Addresses of our objects that refer to the user's."""
        return {id(self._kept), id(self.packed)}

    def drop(self) -> None:
        """Lets go of all nodes."""
        self._kept.clear()
        self.packed.clear()

    def _read_one(self, root: Any, holder: Any, phase: str) -> None:
        lowest = private.node_number(root) - private.deep_walk_limit()
        nodes, stack = self._nodes, [root]
        while stack:
            node = stack.pop()
            if id(node) in nodes:
                continue
            if not len(nodes) % _CLOCK_EVERY and perf_counter() > self._deadline:
                self.complete = False
                return
            nodes.add(id(node))
            self._kept.append(node)
            if private.is_leaf_node(node):
                self._later.append((node.variable, TENSOR, LEAF))
                continue
            self._saved(node, holder, phase)
            number = private.node_number(node)
            if number < lowest:
                self.cut_nodes += number
            else:
                stack += [following for following, _ in node.next_functions if following is not None]

    def _saved(self, node: Any, holder: Any, phase: str) -> None:
        for value, hook in saved_values(node):
            if not issubclass(type(value), torch.Tensor):
                self._pack(value, holder)
            elif as_torch.layout(value) is not torch.strided:
                self._later.append((value, ACTIVATION, _GRAPH))
            else:
                self._account.tensor(value, ACTIVATION, phase, holder, _GRAPH)
            if hook is not None:
                self._pack(hook, holder)
        for part in private.kept_by_function(node):
            self._pack(part, holder)

    def _pack(self, thing: Any, holder: Any) -> None:
        if thing is not None and id(thing) not in self._packed:
            self._packed.add(id(thing))
            self.packed.append((thing, holder, _GRAPH))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No other Python thread runs in the block, as long as nothing in it lets go of the interpreter's lock."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_PATIENCE_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
