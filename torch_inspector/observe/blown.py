"""Operands stretched against each other to something large that is added up right after."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers, made_by, number_of
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

BLOWN = "blown-up"

# Smaller ones are not noted.
_LEAST_NBYTES = 1 << 20
# So many times larger than the operands and than what becomes of it.
_TIMES = 8
# Operations in which two operands meet.
_MEETS = frozenset(
    f"{name}Backward{n}"
    for name in ("Sub", "Add", "Mul", "Div", "Rsub", "Maximum", "Minimum", "Where", "Atan2", "Hypot")
    for n in range(3)
)
# Operations on each element of it.
_ELEMENTWISE = frozenset(
    f"{name}Backward{n}"
    for name in (
        "Pow", "Abs", "Mul", "Sqrt", "Square", "Exp", "Log", "Log1P", "Tanh", "Sigmoid", "Relu", "Neg", "Div", "Clamp",
        "ClampMin", "ClampMax", "Add", "Sub", "Sgn", "Cos", "Sin", "Huber", "SmoothL1Loss", "ToCopy", "Alias", "Clone",
    )
    for n in range(4)
)  # fmt: skip
# What adds up along an axis: name of the node, and what the user may know it as.
_REDUCES = {
    "SumBackward1": "sum", "MeanBackward1": "mean", "LinalgVectorNormBackward0": "norm", "NormBackward1": "norm",
    "NormBackward3": "norm", "AmaxBackward0": "amax", "AminBackward0": "amin", "MaxBackward0": "max",
    "MinBackward0": "min", "LogsumexpBackward0": "logsumexp", "ProdBackward1": "prod",
}  # fmt: skip
# Elementwise operations between the meeting and the reduction.
_WAY = 12


def blown_up(walk: Walk, consumers: Consumers) -> Iterator[PatternFact]:
    """Large tables between small operands and a small result, of each way to one result the last."""
    found: dict[int, PatternFact] = {}
    for kind in sorted(_MEETS & walk.by_kind.keys()):
        for node in walk.by_kind[kind]:
            table = made_by(node)
            if table is not None and table[1] >= _LEAST_NBYTES:
                for end, fact in _judged(node, table, consumers):
                    known = found.get(end)
                    if known is None or len(fact.nodes) < len(known.nodes):
                        found[end] = fact
    yield from found.values()


def _judged(node: Node, table: tuple[Shape, int], consumers: Consumers) -> Iterator[tuple[int, PatternFact]]:
    shape, nbytes = table
    sides = _sides(node)
    size = number_of(shape)
    if len(sides) != 2 or size < _TIMES * max(map(number_of, sides)):  # noqa: PLR2004  (the two operands)
        return
    way = _way_to_reduction(node, shape, consumers)
    result = private.output_shape(way[-1]) if way else None
    if result and size >= _TIMES * number_of(result):
        names = tuple(type(n).__name__ for n in reversed(way))
        yield id(way[-1]), PatternFact(BLOWN, names, (shape, *sides, result), (_REDUCES[names[0]],), nbytes=nbytes)


def _sides(node: Node) -> list[Shape]:
    """Shapes of the operands that are known, from the graph or from what the node has saved; before any `expand()`."""
    edges = [
        _before_expand(parent) or private.output_shape(parent, number) if parent is not None else None
        for parent, number in node.next_functions[:2]
    ]
    saved = [_saved_shape(node, name) for name in ("self", "other")]
    return [side for side in (a or b for a, b in zip(edges, saved, strict=False)) if side is not None]


def _before_expand(node: Node) -> Shape | None:
    """What was expanded to an operand, some operations on each element later, as in `cosine_similarity`."""
    shape = private.output_shape(node)
    for _ in range(_WAY):
        parent = node.next_functions[0][0] if node.next_functions else None
        if parent is None:
            return None
        if type(node).__name__ == "ExpandBackward0":
            return private.output_shape(parent)
        if type(node).__name__ not in _ELEMENTWISE or private.output_shape(parent) != shape:
            return None
        node = parent
    return None


def _saved_shape(node: Node, name: str) -> Shape | None:
    value = saved_value(node, name)
    return tuple(value.shape) if is_one_of(value, (torch.Tensor, torch.nn.Parameter)) else None


def _way_to_reduction(node: Node, shape: Shape, consumers: Consumers) -> list[Node]:
    """The nodes from here to the one that adds the table up; empty if anything else is done with it."""
    way = [node]
    while len(way) <= _WAY:
        users = consumers.of(way[-1])
        first = users[0] if users else None
        if first is None or any(user is not first for user in users):
            return []
        way.append(first)
        if type(first).__name__ in _REDUCES:
            return way
        if type(first).__name__ not in _ELEMENTWISE or private.output_shape(first) != shape:
            return []
    return []
