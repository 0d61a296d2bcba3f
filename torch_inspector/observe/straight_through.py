"""Sums that have the gradient of one thing and the value of another: `sur - sur.detach() + true`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.observe.cuts import given
from torch_inspector.observe.cutting import cut_of
from torch_inspector.observe.texts import Spot, Texts

_SUMS, _PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)
# What leaves the value as it is and the history behind.
_SAME_VALUE = frozenset(["detach", "data", "item"])
# Names in a row that are followed, if the sum itself does not say it.
_DEEPEST = 3


class _Term(NamedTuple):
    spot: Spot
    plus: bool = True
    cut: bool = False
    """True if its history is left behind."""
    weights: tuple[str, ...] = ()
    """Names that it is multiplied by; numbers do not count."""

    @property
    def text(self) -> str:
        return " * ".join(sorted([ast.unparse(self.spot.node), *self.weights]))


def live_terms(spots: list[Spot], texts: Texts) -> list[Spot] | None:
    """The terms with a history of what is added up, if in it one is taken away again without it; else None.

    Such a sum has the value of what else stands in it, which is why that has no history. Numbers that weigh the
    terms may differ: nobody takes a loss away from itself by mistake.
    """
    for names in (0, _DEEPEST):
        terms = [one for spot in spots for one in _terms(spot, texts, names)]
        live = {(one.text, one.plus) for one in terms if not one.cut}
        if any(one.cut and (one.text, not one.plus) in live for one in terms):
            return [one.spot for one in terms if not one.cut]
    return None


def _terms(spot: Spot, texts: Texts, names: int) -> Iterator[_Term]:
    """The terms of a sum, without their weights, by way of so many names at most."""
    node = spot.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS):
        yield from _terms(spot._replace(node=node.left), texts, names)
        right = _terms(spot._replace(node=node.right), texts, names)
        yield from (_turned(one) if isinstance(node.op, ast.Sub) else one for one in right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from map(_turned, _terms(spot._replace(node=node.operand), texts, names))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _PRODUCTS):
        yield from _weighed(node, spot, texts, names)
    else:
        yield from _alone(spot, texts, names)


def _turned(term: _Term) -> _Term:
    return term._replace(plus=not term.plus)


def _weighed(node: ast.BinOp, spot: Spot, texts: Texts, names: int) -> Iterator[_Term]:
    """The terms of what is multiplied by a number or a name."""
    both = [(node.left, node.right), (node.right, node.left)]
    sides = both if isinstance(node.op, ast.Mult) else both[:1]
    for kind in (ast.Constant, ast.Name):
        for one, by in sides:
            if isinstance(by, kind):
                weights = (by.id,) if isinstance(by, ast.Name) else ()
                inner = _terms(spot._replace(node=one), texts, names)
                yield from (term._replace(weights=(*term.weights, *weights)) for term in inner)
                return
    yield _Term(spot)


def _alone(spot: Spot, texts: Texts, names: int) -> Iterator[_Term]:
    """A term that is no sum by itself: what is cut off may be one, and a name may be given one."""
    found = cut_of(spot.node)
    if found is not None and found[1] in _SAME_VALUE:
        yield from (one._replace(cut=True) for one in _terms(spot._replace(node=found[0]), texts, names))
        return
    values = list(given(spot.node.id, spot, texts)) if isinstance(spot.node, ast.Name) and names else []
    parts = list(_terms(values[0], texts, names - 1)) if len(values) == 1 else []
    told = len(parts) > 1 or any(one.cut for one in parts)
    yield from parts if told else [_Term(spot)]
