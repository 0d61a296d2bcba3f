"""How the rows of a batch became one row on the way to a loss: by a view that folds them, or by pooling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.kindred import LAYERS, ancestors
from torch_inspector.observe.private import Node

_VIEWS = frozenset(["ViewBackward0", "ReshapeAliasBackward0", "UnsafeViewBackward0"])
# What stands between a weight and the layer that multiplies by it.
_TURNS = frozenset(["TBackward0", "TransposeBackward0", "PermuteBackward0"])


# Nodes behind all the losses of one `backward()`, 50 ms: as many as a sum of ten losses of a deep network has.
_NODES = 10_000


class Pasts:
    """What is behind the tensors of one graph, up to so many nodes for all of them together."""

    def __init__(self) -> None:
        self._left = _NODES

    def of(self, made: Node) -> list[Node]:
        """The nodes behind a tensor, itself first; none once too many were asked for."""
        found = list(ancestors(made).values()) if self._left > 0 else []
        self._left -= len(found)
        return found


def is_pooled(past: list[Node], rows: int) -> bool:
    """True if one row was made of so many by a mean, a sum, a selection or a product: it is meant.

    What is behind a view that folds them has not made one of them: `h * gate(h.mean(0))` has as many rows as `h`.
    """
    steps = _steps(_unfolded(past, rows))
    return any(before[0] == rows and _is_one_of(before, after) for _, before, after in steps)


def fold_of(past: list[Node], rows: int) -> str:
    """The name of the view that put so many rows into one; empty if none is seen."""
    found = (name for name, before, after in _steps(past) if name in _VIEWS and _is_fold(before, after, rows))
    return next(found, "")


def _steps(past: Iterable[Node]) -> Iterator[tuple[str, Shape, Shape]]:
    """The operations behind a tensor, each with the shape of what it was given and of what it made."""
    for node in past:
        name = type(node).__name__
        for parent, number in node.next_functions:
            if parent is None or private.is_leaf_node(parent) or (name in LAYERS and type(parent).__name__ in _TURNS):
                continue
            before, after = private.output_shape(parent, number), private.output_shape(node)
            if before and after is not None:
                yield name, before, after


def _is_one_of(before: Shape, after: Shape) -> bool:
    return before[0] > 1 and after in (before[1:], (1, *before[1:]))


def _is_fold(before: Shape, after: Shape, rows: int) -> bool:
    return before[0] == rows > 1 == after[0] and rows not in after if after else False


def _unfolded(past: list[Node], rows: int) -> list[Node]:
    """Those nodes that lead to the first one past no view that folds so many rows."""
    known = {id(node) for node in past}
    reached = {id(node): node for node in past[:1]}
    stack = past[:1]
    while stack:
        node = stack.pop()
        for parent, number in node.next_functions:
            if parent is None or id(parent) in reached or id(parent) not in known or _folds(node, parent, number, rows):
                continue
            reached[id(parent)] = parent
            stack.append(parent)
    return list(reached.values())


def _folds(node: Node, parent: Node, number: int, rows: int) -> bool:
    if type(node).__name__ not in _VIEWS:
        return False
    before, after = private.output_shape(parent, number), private.output_shape(node)
    return before is not None and after is not None and len(before) > 0 and _is_fold(before, after, rows)
