"""Products in which a column (N, 1) met a row (N,), and whose mean or sum over everything is a loss.

The sum of all `a[i] * b[j]` is the sum of `a` times the sum of `b`: nobody needs a table for that. So it is a mistake
whatever the two sides are, as long as nothing in between tells one pair from another. What the constant side is like,
the operation itself has kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch

from torch_inspector.facts import PatternFact, Shape
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kindred import are_akin, is_predicted
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value
from torch_inspector.observe.shapes import partners, shape_of
from torch_inspector.observe.stretched import STRETCHED, Stretch, inputs, is_made_tall, is_table, reduces_all

FactorName = Callable[[Stretch], "str | None"]
"""What the user's code calls the other side of a product, empty if it does not tell; None if it is meant."""

_REDUCTIONS = frozenset(["MeanBackward0", "SumBackward0", "MeanBackward1", "SumBackward1"])
# What a product may be, what the code says for it, and what it keeps of its first and its second side.
_PRODUCTS = {
    "MulBackward0": ("mul", ("other", "self")),
    "DivBackward0": ("div", ("other", "self")),
    "WhereBackward0": ("where", ("condition", "condition")),
}
# What is the same for all pairs, and what at least does not tell them apart.
_STRAIGHT = frozenset(
    ["MulBackward0", "DivBackward0", "WhereBackward0", "NegBackward0", "AddBackward0", "SubBackward0", "RsubBackward1",
     "ToCopyBackward0"]
)  # fmt: skip
_BENT = frozenset(
    ["MinimumBackward0", "MaximumBackward0", "ReluBackward0", "ClampBackward1", "ClampMinBackward0",
     "LogSigmoidBackward0", "SoftplusBackward0"]
)  # fmt: skip
# Single numbers that were put in a row, one for each sample or step.
_JOINS = frozenset(["StackBackward0", "CatBackward0"])
_TERMS = 40
# What a table without history may be added to or taken from.
_SUMS = frozenset(["AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1"])
# Numbers that are asked whether they go up or down all along.
_NUMBERS = 64


def unnamed(_: Stretch) -> str:
    """Names nothing, where no code is known."""
    return ""


def stretched_products(node: Node, name_of: FactorName) -> Iterator[PatternFact]:
    """The first such product below a mean or a sum."""
    top, table = inputs(node)[0]
    summed = type(node).__name__ in _REDUCTIONS
    if top is None or table is None or not summed or not is_table(table) or not reduces_all(node, len(table)):
        return
    terms = _terms(top, table)
    bent = any(type(term).__name__ in _BENT for term in terms)
    if bent and any(_adds_unknown(term) for term in terms):
        return
    for term in terms:
        found = _judged(term, table, name_of, bent=bent)
        if found is not None:
            name, *shapes = found
            kinds = type(node).__name__, type(term).__name__
            yield PatternFact(STRETCHED, kinds, (table, *shapes), (name,) if name else ())
            return


def _terms(top: Node, table: Shape) -> list[Node]:
    """Operations on the table down from its mean; none if one of them may tell the pairs apart."""
    stack, seen = [top], dict[int, Node]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        if type(node).__name__ not in _STRAIGHT | _BENT or len(seen) == _TERMS or _keeps(node, table):
            return []
        seen[id(node)] = node
        stack.extend(n for n, shape in inputs(node) if n is not None and shape == table)
    return list(seen.values())


def _adds_unknown(node: Node) -> bool:
    """True if something without history is added, of which the graph knows nothing: it may be a table of the pairs."""
    return type(node).__name__ in _SUMS and len(node.next_functions) > 1 and any(n is None for n, _ in inputs(node))


def _keeps(node: Node, table: Shape) -> bool:
    """True if something is done with a table that has no history: weights or a mask of pairs."""
    kind, sides = type(node).__name__, inputs(node)
    if kind in ("MinimumBackward0", "MaximumBackward0"):
        return any(n is None for n, _ in sides)
    kept = _PRODUCTS[kind][1] if kind in _PRODUCTS else ()
    missing = [name for name, (n, _) in zip(kept, sides, strict=False) if n is not None]
    return any(shape_of(saved_value(node, name)) == table for name in missing if _is_constant(node, name))


def _is_constant(node: Node, name: str) -> bool:
    """False for the side that has a history itself."""
    sides = inputs(node)
    return name == "condition" or sides[1 if name == "other" else 0][0] is None


def _judged(term: Node, table: Shape, name_of: FactorName, *, bent: bool) -> tuple[str, Shape, Shape] | None:
    """The name of the other side, and both shapes, if the term stretched a column and a row by mistake."""
    operation, kept = _PRODUCTS.get(type(term).__name__, ("", ()))
    known = [(n, shape, name) for (n, shape), name in zip(inputs(term), kept, strict=False) if n is not None and shape]
    if len(known) == 2 and operation != "where":  # noqa: PLR2004
        (one, first, _), (two, second, _) = known
        fits = second in partners(first, table) and not bent and not are_akin(one, two)
        each = fits and is_each(one, first, second) and is_each(two, second, first)
        return ("", first, second) if each and (is_predicted(one) or is_predicted(two)) else None
    for node, shape, name in known:
        other = shape_of(saved_value(term, name)) if _is_constant(term, name) else None
        if other in partners(shape, table) and other and is_each(node, shape, other) and is_predicted(node):
            if bent and _may_be_levels(saved_value(term, name)):
                return None
            said = name_of(Stretch(operation, shape, other, node, table, bent))
            return (said, shape, other) if said is not None else None
    return None


def _may_be_levels(value: object) -> bool:
    """True for numbers that go up or down all along, as quantiles and temperatures do; where they are not read, too."""
    if not isinstance(value, torch.Tensor) or not is_in_memory(value):
        return True
    numbers = as_torch.tolist(as_torch.detach(value).reshape(-1)[:_NUMBERS])
    return all(a < b for a, b in pairwise(numbers)) or all(a > b for a, b in pairwise(numbers))


def is_each(node: Node, shape: Shape, wanted: Shape) -> bool:
    """True for numbers of which each belongs to a sample: a column that no view made, a row that was a column."""
    if private.is_leaf_node(node):
        return False
    return not is_made_tall(node, shape, wanted) if len(shape) > len(wanted) else _was_tall(node, shape)


def _was_tall(node: Node, shape: Shape) -> bool:
    stack, seen = [node], set[int]()
    while stack and len(seen) < _TERMS:
        node = stack.pop()
        if id(node) in seen or private.is_leaf_node(node):
            continue
        seen.add(id(node))
        given = [(n, before) for n, before in inputs(node) if n is not None and before is not None]
        if type(node).__name__ in _JOINS or any(len(b) > len(shape) and b[0] == shape[0] for _, b in given):
            return type(node).__name__ != "MvBackward0"
        stack.extend(n for n, before in given if before == shape)
    return False
