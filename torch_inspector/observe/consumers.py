"""An autograd graph read the other way: which operations used what a node had made."""

from __future__ import annotations

from functools import cached_property
from math import prod

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node
from torch_inspector.observe.slices import is_whole, past_whole


class Consumers:
    """Made once per look; reads the edges of the graph when it is first asked, and only then."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    @cached_property
    def _by_node(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for node in self._walk.nodes.values():
            # Nodes that the walk did not read on are not read here either, see `private.deep_walk_limit`.
            if private.is_leaf_node(node) or private.node_number(node) < self._walk.lowest:
                continue
            if not is_whole(node):
                for parent, _ in node.next_functions:
                    self._note(node, parent, found)
        return found

    @staticmethod
    def _note(user: Node, parent: Node | None, found: dict[int, list[Node]]) -> None:
        if parent is not None:
            made = past_whole(parent)
            for one in (parent,) if made is parent else (parent, made):
                found.setdefault(id(one), []).append(user)

    def of(self, node: Node) -> list[Node]:
        """Nodes that were given a result of this one; none for the end of the graph."""
        return self._by_node.get(id(node), [])


def number_of(shape: Shape) -> int:
    """How many elements a shape has."""
    return prod(shape)


def made_by(node: Node) -> tuple[Shape, int] | None:
    """Shape and bytes of the first result of a node; None if torch does not tell, or if it is no plain tensor."""
    shape = private.output_shape(node)
    size = private.output_itemsize(node)
    return None if shape is None or not size else (shape, prod(shape) * size)
