"""What a loss of torch spread over several targets: one predicted number a sample, (N, 1) with (N, 4), or one row."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import private
from torch_inspector.observe.folded_rows import Pasts, fold_of, is_pooled
from torch_inspector.observe.kindred import LAYERS
from torch_inspector.observe.private import Node
from torch_inspector.observe.stretched import PAIR_LOSSES, OtherSide, Stretch

SPREAD = "spread-prediction"

_REDUCTIONS = frozenset(["MeanBackward0", "SumBackward0"])
_TABLE = 2


def spread_predictions(node: Node, other_side: OtherSide, pasts: Pasts) -> Iterator[PatternFact]:
    """A pair loss or an `l1_loss` which expanded a prediction (N, 1), or (1, C), to the (N, C) of its target.

    Only losses of torch, which warn of it: they expand both sides, where a formula broadcasts. One row that is the
    mean, the sum or one of as many rows is meant; with one that a view made of them, the view is the second node.
    """
    operation, difference = _difference(node)
    expanded = _expanded(difference) if difference is not None else None
    if expanded is None:
        return
    made, known, table = expanded
    rows, columns = table
    one_number = known == (rows, 1) and columns > 1 and rows not in (1, columns)
    one_row = known == (1, columns) and rows > 1
    past = pasts.of(made) if one_number or one_row else []
    if any(type(one).__name__ in LAYERS for one in past) and not (one_row and is_pooled(past, rows)):
        other = other_side(Stretch(operation, known, table, made, table))
        texts = (other.text,) if other is not None and other.text else ()
        fold = fold_of(past, rows) if one_row else ""
        yield PatternFact(SPREAD, (operation, fold) if fold else (operation,), (table, known), texts)


def _difference(node: Node) -> tuple[str, Node | None]:
    """The name of the loss, and the node whose inputs are its two sides."""
    kind = type(node).__name__
    if kind in PAIR_LOSSES:
        return PAIR_LOSSES[kind], node
    if kind not in _REDUCTIONS:
        return "", None
    parent = node.next_functions[0][0]
    if parent is None or type(parent).__name__ != "AbsBackward0":
        return "", None
    return "l1_loss", parent.next_functions[0][0]


def _expanded(difference: Node) -> tuple[Node, Shape, Shape] | None:
    """The node of the only side with a history, its shape, and what it was expanded to, if it was."""
    sides = [parent for parent, _ in difference.next_functions[:2] if parent is not None]
    if len(sides) != 1 or type(sides[0]).__name__ != "ExpandBackward0":
        return None
    made, number = sides[0].next_functions[0]
    table = private.output_shape(sides[0])
    known = private.output_shape(made, number) if made is not None else None
    if made is None or known is None or table is None or not len(known) == len(table) == _TABLE:
        return None
    return made, known, table
