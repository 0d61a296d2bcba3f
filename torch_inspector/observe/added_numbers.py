"""Terms that a loss adds up as numbers without history though a model gave them: `mse + 0.5 * variation(out).item()`.

Goes from the loss down its sums. Products, powers and the functions of torch are not gone into: in them a number
without history is a factor, a baseline or a target, and meant as a rule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import CutFact, Place, syntax
from torch_inspector.observe.collected import Element, elements, keyed, summed, turned
from torch_inspector.observe.cuts import given, is_optional, returned, root_at
from torch_inspector.observe.cutting import cut_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.standpoints import CUT, LIVE, LOSS_NAMES, MEANT, NONE, OPEN, Standpoint, Standpoints
from torch_inspector.observe.straight_through import live_terms
from torch_inspector.observe.texts import Function, Spot, Texts

_SPOTS = 200
_Names = frozenset[tuple[int, str]]


class _Part(NamedTuple):
    """An expression with a history, whose sums are gone into."""

    spot: Spot
    beside: _Names
    """Names that the other terms of the loss use."""
    weighed: bool = False
    step: bool = False
    """True if it is added to what the loss was: `loss += 0.1 * x.item()`."""
    above: tuple[Spot, ...] = ()
    """What it is a part of and must have a history, not asked before a term is found: most losses are no sums."""


def added_numbers(place: Place, texts: Texts) -> Iterator[CutFact]:
    """Terms of the loss behind a backward call that come from models and have no history; the text is the cut.

    Args:
        place: The line of the call.
        texts: The code of the cells.
    """
    for file in texts.files:
        if file.cell != place.cell or file.tree is None or place.line is None:
            continue
        line = place.line - file.offset
        root = root_at(file.tree, line)
        if root is not None:
            scope = syntax.scope_at(file.tree, line)
            spot = Spot(root, scope, file, 0, *_called_from(scope, texts))
            yield from _Sums(texts).lost(spot, _elsewhere(file.tree, root, spot))
        return


def _called_from(scope: ast.AST, texts: Texts) -> tuple[ast.Call, Spot] | tuple[()]:
    """The one call of the function around a loss, and where it stands: what it gives the parameters is known."""
    if not isinstance(scope, Function):
        return ()
    found = [(one, file) for file in texts.files if file.tree is not None for one in _calls_of(file.tree, scope.name)]
    if len(found) != 1 or any(isinstance(one, ast.Starred) for one in found[0][0].args):
        return ()
    call, file = found[0]
    return call, Spot(call, syntax.scope_at(file.tree, call.lineno) if file.tree is not None else scope, file, 0)


@lru_cache(maxsize=64)
def _calls_of(tree: ast.Module, name: str) -> list[ast.Call]:
    calls = (one for one in syntax.walk(tree) if isinstance(one, ast.Call))
    return [one for one in calls if dotted(one.func).rpartition(".")[2] == name]


def _elsewhere(tree: ast.Module, root: ast.expr, spot: Spot) -> list[Spot]:
    """What other backward calls of the cell are called on."""
    return [spot._replace(node=one) for one in _roots(tree) if ast.unparse(one) != ast.unparse(root)]


@lru_cache(maxsize=64)
def _roots(tree: ast.Module) -> list[ast.expr]:
    calls = [n.func for n in syntax.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [one.value for one in calls if one.attr == "backward"]


class _Sums:
    """The sums behind one loss."""

    def __init__(self, texts: Texts) -> None:
        self._texts, self._stand = texts, Standpoints(texts)
        self._seen: set[int] = set()

    def lost(self, root: Spot, others: list[Spot]) -> Iterator[CutFact]:
        """The terms without history of a loss that has one."""
        waiting = [_Part(root, frozenset())]
        while waiting and len(self._seen) < _SPOTS and not self._stand.is_late():
            part = waiting.pop(0)
            if id(part.spot.node) in self._seen or part.spot.node.lineno > root.node.lineno + _later(part, root):
                continue
            if part.step and not all(self._stand.of(one).level == LIVE for one in part.above):
                continue
            self._seen.add(id(part.spot.node))
            cut = self._cut(part)
            if cut is not None:
                elsewhere = (self._stand.of(one).names for one in others)
                weight = part.weighed or self._has_weight(part.spot)
                yield from _fact(part._replace(beside=part.beside.union(*elsewhere)), cut, weight)
            else:
                above = part.above if self._is_cut_sum(part.spot) else (*part.above, part.spot)
                waiting.extend(self._parts(part._replace(above=above)))

    def _cut(self, part: _Part) -> Standpoint | None:
        """What is known of a term that has no history; None for any other part."""
        if not part.step or self._is_cut_sum(part.spot):
            return None
        stand = self._stand.of(part.spot)
        made = _leaf_of(part.spot) if stand.level != CUT else None
        stand = self._stand.of(made) if made is not None else stand
        return stand if stand.level == CUT else None

    def _is_cut_sum(self, spot: Spot) -> bool:
        """True for `one + two` of terms without history: each is told by itself."""
        if not isinstance(spot.node, ast.BinOp) or not isinstance(spot.node.op, ast.Add):
            return False
        return all(self._stand.of(spot._replace(node=one)).level == CUT for one in (spot.node.left, spot.node.right))

    def _parts(self, part: _Part) -> Iterator[_Part]:
        node, spot = part.spot.node, part.spot
        if isinstance(node, ast.Name):
            yield from self._values(node.id, part)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            live = self._live([spot], part)
            yield from self._beside([node.left, node.right], part) if live is None else live
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if self._is_plain(spot._replace(node=other)):
                    weighed = part.weighed or not isinstance(other, ast.Call)
                    yield part._replace(spot=spot._replace(node=one), weighed=weighed)
        elif isinstance(node, ast.UnaryOp):
            yield part._replace(spot=spot._replace(node=node.operand))
        elif isinstance(node, ast.IfExp):
            yield from (part._replace(spot=spot._replace(node=one)) for one in (node.body, node.orelse))
        elif isinstance(node, ast.Subscript):
            yield from (part._replace(spot=one) for one in keyed(node, spot, self._texts))
        elif isinstance(node, ast.Call):
            yield from self._called(node, part)

    def _called(self, node: ast.Call, part: _Part) -> Iterator[_Part]:
        listed = summed(node, part.spot, self._texts)
        if listed is not None:
            terms = list(elements(listed, self._texts))
            live = self._live([one.spot for one in terms], part)
            yield from self._of(terms, part) if live is None else live
        elif not self._stand.is_model(node.func):
            yield from (part._replace(spot=one) for one in returned(node, part.spot, self._texts))

    def _live(self, spots: list[Spot], part: _Part) -> list[_Part] | None:
        """Of a sum that has the value of one thing and the gradient of another, what has the gradient; else None."""
        live = live_terms(spots, self._texts)
        known = (one for one in live or () if self._stand.of(one).level == LIVE)
        return [part._replace(spot=one, step=False) for one in known] if live is not None else None

    def _beside(self, sides: list[ast.expr], part: _Part) -> Iterator[_Part]:
        """Terms of one sum, each with the names of the others."""
        return self._of((Element(part.spot._replace(node=one)) for one in sides), part)

    def _of(self, found: Iterable[Element], part: _Part) -> Iterator[_Part]:
        """Terms that are added up, each with the names of the others; a weight of theirs has to be plain."""
        terms = list(found)
        if not all(one.weight is None or self._stand.of(one.weight).level == NONE for one in terms):
            return
        for spot, weight, _ in terms:
            others = (self._stand.of(other.spot).names for other in terms if other.spot is not spot)
            weighed = part.weighed or weight is not None
            yield part._replace(spot=spot, beside=part.beside.union(*others), weighed=weighed, step=True)

    def _values(self, name: str, part: _Part) -> Iterator[_Part]:
        """What a name is given, and what is added to it."""
        values = list(given(name, part.spot, self._texts))
        if not values:
            yield from self._of(turned(part.spot, self._texts), part)
        added = {id(n.value): n.op for n in syntax.walk(part.spot.scope) if isinstance(n, ast.AugAssign)}
        if any(id(one.node) not in added and live_terms([one], self._texts) is not None for one in values):
            values = [one for one in values if self._stand.of(one).level == LIVE]
        for one in values:
            others = (self._stand.of(other).names for other in values if other is not one)
            operation = added.get(id(one.node))
            if operation is None:
                yield part._replace(spot=one, step=False)
            elif isinstance(operation, (ast.Add, ast.Sub)):
                yield part._replace(spot=one, beside=part.beside.union(*others), step=True)

    def _has_weight(self, spot: Spot) -> bool:
        """True for a term with a weight on it, and for a name that is given nothing else: `kd = 0.1 * x.detach()`."""
        if not isinstance(spot.node, ast.Name):
            return _has_weight(spot.node)
        values = list(given(spot.node.id, spot, self._texts))
        return bool(values) and all(self._is_weighed(one) for one in values)

    def _is_weighed(self, spot: Spot) -> bool:
        """True for a product with a setting: what comes from a model is no weight, and may be all that is meant."""
        node = spot.node
        if not isinstance(node, ast.BinOp) or not _has_weight(node):
            return False
        weights = [spot._replace(node=one) for one in (node.left, node.right) if _is_setting(one)]
        return any(self._stand.of(one).level in (NONE, OPEN) for one in weights)

    def _is_plain(self, spot: Spot) -> bool:
        """True for a number of the text, a name for one, and a count."""
        counted = isinstance(spot.node, ast.Call) and dotted(spot.node.func) == "len"
        named = isinstance(spot.node, (ast.Constant, ast.Name, ast.Attribute))
        return (named or counted) and self._stand.of(spot).level == NONE


def _later(part: _Part, root: Spot) -> int:
    """How many lines below the call a value of it may stand: none in its own scope."""
    return 0 if part.spot.scope is root.scope and part.spot.file is root.file else 1 << 30


def _leaf_of(spot: Spot) -> Spot | None:
    """The number in `torch.tensor(x.item(), requires_grad=True)`, whose history ends where it begins."""
    cut = cut_of(spot.node)
    asked = isinstance(spot.node, ast.Call) and any(one.arg == "requires_grad" for one in spot.node.keywords)
    return spot._replace(node=cut[0]) if cut is not None and cut[1] == "tensor" and asked else None


def _fact(part: _Part, stand: Standpoint, weight: bool) -> Iterator[CutFact]:
    """The cut behind a term, if the term is in the loss for its gradient as far as the text says."""
    cut = stand.cuts[0]
    if stand.recurrent or stand.held & part.beside:
        return
    # An estimate that is shown as a loss may detach one side on purpose, and has no weight on it; a loss may be shown.
    bare = cut.kind in MEANT and not weight
    if bare and (not _is_named_loss(cut.node) or is_optional(cut.node, cut.spot.scope)):
        return
    place = Place(cut.spot.file.cell, cut.node.lineno + cut.spot.file.offset)
    term = ast.unparse(part.spot.node)
    yield CutFact(place, ast.unparse(cut.node), cut.kind, tuple(sorted(stand.models)), term=term, bare=bare)


def _is_named_loss(node: ast.expr) -> bool:
    """True for `F.mse_loss(…).detach()` and `kd_loss.data`: what loses its history is called a loss."""
    found = cut_of(node)
    whole = found[0].func if found is not None and isinstance(found[0], ast.Call) else found[0] if found else None
    return whole is not None and LOSS_NAMES.search(ast.unparse(whole).rpartition(".")[2]) is not None


def _has_weight(node: ast.expr) -> bool:
    """True for `0.1 * x` and `weight * x`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div))


def _is_setting(node: ast.expr) -> bool:
    """True for a number, a name, and `settings["weight"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and bool(dotted(node.value))
    return isinstance(node, ast.Constant) or bool(dotted(node))
