"""Expanded tensors that were free in forward and whose gradient has the full size."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact
from torch_inspector.observe import private
from torch_inspector.observe.consumers import Consumers, made_by, number_of
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.private import Node

EXPANDED = "expanded"

_LEAST_NBYTES = 10 << 20
# How many times an element is repeated, and how much smaller the result is than all repetitions.
_TIMES, _SMALLER = 10, 4
# What reads an expanded tensor without writing anything of its size, and gives back a gradient that has it.
# A sum is missing: its gradient is an expanded one again.
_READS = frozenset(
    ["MeanBackward0", "MeanBackward1", "LinalgVectorNormBackward0", "NormBackward0", "NormBackward1", "NormBackward3",
     "VarBackward0", "StdBackward0", "AmaxBackward0", "AminBackward0", "MaxBackward0", "MinBackward0",
     "LogsumexpBackward0", "SelectBackward0", "SliceBackward0", "IndexBackward0", "IndexSelectBackward0",
     "GatherBackward0"]
)  # fmt: skip


def expanded(walk: Walk, consumers: Consumers) -> Iterator[PatternFact]:
    """Every expand that repeats a tensor many times for an operation with a small result."""
    for node in walk.by_kind.get("ExpandBackward0", ()):
        made = made_by(node)
        if made is not None and made[1] >= _LEAST_NBYTES:
            yield from _judged(node, made[1], consumers)


def _judged(node: Node, nbytes: int, consumers: Consumers) -> Iterator[PatternFact]:
    parent, number = node.next_functions[0]
    shape = private.output_shape(node)
    before = private.output_shape(parent, number) if parent is not None else None
    if shape is None or before is None or number_of(shape) < _TIMES * number_of(before):
        return
    for user in consumers.of(node):
        result = private.output_shape(user)
        small = result is not None and _SMALLER * number_of(result) <= number_of(shape)
        if small and result is not None and type(user).__name__ in _READS:
            names = (type(user).__name__, type(node).__name__)
            yield PatternFact(EXPANDED, names, (shape, before, result), nbytes=nbytes)
            return
