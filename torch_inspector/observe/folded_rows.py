"""How the rows of a batch became one row on the way to a loss: by a view that folds them, or by pooling."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Shape
from torch_inspector.observe import private
from torch_inspector.observe.kindred import LAYERS, ancestors
from torch_inspector.observe.private import Node

_VIEWS = frozenset(["ViewBackward0", "ReshapeAliasBackward0", "UnsafeViewBackward0"])
# What stands between a weight and the layer that multiplies by it.
_TURNS = frozenset(["TBackward0", "TransposeBackward0", "PermuteBackward0"])


def is_pooled(made: Node, rows: int) -> bool:
    """True if one row was made of so many by a mean, a sum, a selection or a product: it is meant."""
    return any(before[0] == rows and _is_one_of(before, after) for _, before, after in _steps(made))


def fold_of(made: Node, rows: int) -> str:
    """The name of the view that put so many rows into one; empty if none is seen."""
    found = (name for name, before, after in _steps(made) if name in _VIEWS and _is_fold(before, after, rows))
    return next(found, "")


def _steps(made: Node) -> Iterator[tuple[str, Shape, Shape]]:
    """The operations behind a tensor, each with the shape of what it was given and of what it made."""
    for node in ancestors(made).values():
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
