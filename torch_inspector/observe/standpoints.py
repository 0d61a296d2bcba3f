"""Whether the value of an expression has a history, as far as the text says, and which models it comes from."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from time import thread_time
from typing import NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.collected import is_changed, keyed
from torch_inspector.observe.cuts import given, returned
from torch_inspector.observe.cutting import cut_of, without_grad
from torch_inspector.observe.source import dotted
from torch_inspector.observe.texts import Spot, Texts

# No word of a model; from a model and without history; not known; with a history.
NONE, CUT, OPEN, LIVE = range(4)
# Cuts that are written on purpose as a rule.
MEANT = ("detach", "data")
# Expressions that are judged for one loss, one inside the other, and processor time for all of them.
_MOST, _DEEPEST, _TIME_S = 600, 50, 0.015
# What tells of a tensor and not its values.
_ABOUT = frozenset(["shape", "device", "dtype", "ndim", "grad_fn", "requires_grad", "training"])
_ABOUT_CALLS = frozenset(
    (
        *("len", "range", "size", "numel", "dim", "zeros_like", "ones_like", "rand_like", "randn_like", "empty_like"),
        *("full_like", "new_zeros", "new_ones", "isinstance", "print", "type", "id"),
    )
)
# What losses, and dictionaries of them, are called.
LOSS_NAMES = re.compile(r"loss|crit|cross_entropy|kl_div|distil", re.IGNORECASE)
_LIBRARIES = frozenset(["torch", "nn", "F", "np", "numpy", "math", "scipy", "functional"])
_METHODS = frozenset(dir(torch.Tensor)) | {"astype", "items"}
_BUILTINS = frozenset(dir(builtins))


class Cut(NamedTuple):
    """A part of an expression that loses the history."""

    node: ast.expr
    kind: str
    spot: Spot


class Standpoint(NamedTuple):
    """What is known of the value of an expression."""

    level: int = NONE
    models: frozenset[str] = frozenset()
    cuts: tuple[Cut, ...] = ()
    names: frozenset[tuple[int, str]] = frozenset()
    """All names that it is made of, each with its scope."""
    held: frozenset[tuple[int, str]] = frozenset()
    """Those that stand for a value from a model without history, and those of which it is one as a whole."""
    recurrent: bool = False
    """True if a name in it is made of what it was."""


def _joined(parts: Iterable[Standpoint]) -> Standpoint:
    found = list(parts)
    if not found:
        return Standpoint()
    return Standpoint(
        max(one.level for one in found),
        frozenset[str]().union(*(one.models for one in found)),
        tuple(dict.fromkeys(cut for one in found for cut in one.cuts)),
        frozenset[tuple[int, str]]().union(*(one.names for one in found)),
        frozenset[tuple[int, str]]().union(*(one.held for one in found)),
        any(one.recurrent for one in found),
    )


class Standpoints:
    """Judges expressions of some cells, each once."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._roots = {name.partition(".")[0] for name in texts.models if not name.startswith("self.")}
        self._imported = frozenset[str]().union(*(_imported_in(file.tree) for file in texts.files if file.tree))
        self._known: dict[tuple[int, int], Standpoint | None] = {}
        self._deadline, self._depth = thread_time() + _TIME_S, 0

    def is_late(self) -> bool:
        """True if the time is used up: what has not been judged by now is not known."""
        return thread_time() > self._deadline

    def is_model(self, node: ast.expr) -> bool:
        """True for a model, its methods and its parts."""
        name = dotted(node)
        return any(name == one or name.startswith(f"{one}.") for one in self._texts.models if name)

    def of(self, spot: Spot) -> Standpoint:
        """What is known of an expression."""
        key = (id(spot.node), id(spot.call))
        if key in self._known:
            return self._known[key] or Standpoint(recurrent=True)
        if len(self._known) > _MOST or self._depth > _DEEPEST or self.is_late():
            return Standpoint(OPEN)
        self._known[key] = None
        self._depth += 1
        self._known[key] = found = self._judged(spot)
        self._depth -= 1
        return found

    def _judged(self, spot: Spot) -> Standpoint:  # noqa: PLR0911
        cut = cut_of(spot.node)
        if cut is not None:
            return self._cut(spot, *cut)
        node = spot.node
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node, spot)
        if isinstance(node, ast.Call):
            return self._called(node, spot)
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and is_changed(node.value.id, spot, self._texts):
                return Standpoint(OPEN)
            under = keyed(node, spot, self._texts)
            return _joined(map(self.of, under)) if under else self.of(spot._replace(node=node.value))
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return self.of(spot._replace(node=node.elt))
        if isinstance(node, ast.IfExp):
            return self._all([node.body, node.orelse], spot)
        if isinstance(node, (ast.Lambda, ast.Await, ast.Yield, ast.DictComp, ast.SetComp)):
            return Standpoint(OPEN)
        return self._all([one for one in syntax.children(node) if isinstance(one, ast.expr)], spot)

    def _all(self, nodes: Iterable[ast.expr], spot: Spot) -> Standpoint:
        return _joined(self.of(spot._replace(node=one)) for one in nodes)

    def _cut(self, spot: Spot, operand: ast.expr, kind: str) -> Standpoint:
        parts = list(syntax.children(operand)) if operand is spot.node else [operand]
        inner = self._all([one for one in parts if isinstance(one, ast.expr)], spot)
        node = spot.node
        if isinstance(node, ast.Call) and any(one.arg == "requires_grad" for one in node.keywords):
            return inner._replace(level=LIVE)
        if not inner.models or inner.level == NONE:
            return inner._replace(level=NONE)
        held = inner.held
        if kind in ("detach", "data", "item") and isinstance(operand, ast.Name):
            held = held | {(id(spot.scope), operand.id)}
        # Of `x.detach().numpy()` the second says more.
        cuts = inner.cuts if any(one.kind not in MEANT for one in inner.cuts) else (Cut(node, kind, spot),)
        return inner._replace(level=CUT, cuts=cuts, held=held)

    def _named(self, node: ast.Name | ast.Attribute, spot: Spot) -> Standpoint:
        name = dotted(node)
        if self.is_model(node) or name in self._texts.parameters:
            return Standpoint(LIVE, frozenset(one for one in self._texts.models if f"{name}.".startswith(f"{one}.")))
        if isinstance(node, ast.Attribute) and node.attr in _ABOUT:
            return Standpoint()
        values = list(given(name, spot, self._texts)) if name else []
        if not values and isinstance(node, ast.Attribute):
            return self._attribute(node, spot)
        places = [*(one for one in values), *(spot._replace(node=one) for one in _turned(name, spot.scope))]
        if not places:
            return Standpoint(OPEN, names=frozenset([(id(spot.scope), name)]))
        return self._given(name, spot, places)

    def _given(self, name: str, spot: Spot, places: list[Spot]) -> Standpoint:
        found = _joined(self._value(one) for one in places)
        own = frozenset([(id(spot.scope), name)])
        # A value without history after one that has it, as for a plot.
        held = found.held | own if found.level == CUT else found.held
        return found._replace(names=found.names | own, held=held)

    def _value(self, spot: Spot) -> Standpoint:
        return Standpoint(OPEN) if without_grad(spot.node, spot.scope) is not None else self.of(spot)

    def _attribute(self, node: ast.Attribute, spot: Spot) -> Standpoint:
        root = dotted(node).partition(".")[0]
        if root in _LIBRARIES:
            return Standpoint()
        if root == "self" or node.attr == "grad":
            return Standpoint(OPEN)
        return self.of(spot._replace(node=node.value))

    def _called(self, node: ast.Call, spot: Spot) -> Standpoint:  # noqa: PLR0911
        name = dotted(node.func)
        last = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if last in _ABOUT_CALLS:
            return Standpoint()
        if self.is_model(node.func):
            return _joined([self._arguments(node, spot), self.of(spot._replace(node=node.func))])
        if "Parameter" in last or any(one.arg == "requires_grad" for one in node.keywords):
            return Standpoint(LIVE)
        if name in self._texts.losses or self._is_loss(node.func):
            return self._arguments(node, spot)
        values = returned(node, spot, self._texts)
        if values:
            return _joined(map(self._value, values))
        if name and self._texts.function(name) is not None:
            return Standpoint(OPEN)
        return self._of_others(node, spot, name)

    def _of_others(self, node: ast.Call, spot: Spot, name: str) -> Standpoint:
        """A call of what is not the user's: its result is made of what it gets."""
        root = name.partition(".")[0]
        if root in _LIBRARIES:
            return self._arguments(node, spot)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return _joined([self._arguments(node, spot), self.of(spot._replace(node=node.func.value))])
        if name in _BUILTINS or name in self._imported:
            return self._arguments(node, spot)
        return Standpoint(OPEN)

    def _arguments(self, node: ast.Call, spot: Spot) -> Standpoint:
        given = [one.value if isinstance(one, ast.Starred) else one for one in node.args]
        return self._all([*given, *(one.value for one in node.keywords)], spot)

    def _is_loss(self, node: ast.expr) -> bool:
        """True for `nn.MSELoss()`, made where it is called, and for `criterions["kd"]`, one of a dictionary."""
        if isinstance(node, ast.Subscript):
            return LOSS_NAMES.search(ast.unparse(node)) is not None
        return isinstance(node, ast.Call) and dotted(node.func).endswith(("Loss", "Similarity"))


@lru_cache(maxsize=64)
def _imported_in(tree: ast.Module) -> frozenset[str]:
    """Functions that a cell imports by name."""
    lines = [node for node in syntax.walk(tree) if isinstance(node, ast.ImportFrom)]
    return frozenset(one.asname or one.name for node in lines for one in node.names)


def _turned(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """What the loops and comprehensions that give a name its values go over."""
    for one in syntax.walk(scope):
        targets = syntax.walk(one.target) if isinstance(one, (ast.For, ast.comprehension)) else ()
        if any(isinstance(part, ast.Name) and part.id == name for part in targets):
            yield one.iter  # type: ignore[attr-defined]
