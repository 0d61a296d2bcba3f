"""What the variables of a loop stood for in its first turns, where what it goes through is still there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import UNKNOWN, Sized, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import IN_ELEMENTS, stores_in

# The first turns speak for all.
_TURNS = 3
_RANGES = frozenset(["range", "trange"])


class Head(NamedTuple):
    """`for target in source`, of a loop or of a comprehension."""

    target: ast.expr
    source: ast.expr
    line: int
    of: Any = None
    """The comprehension; None of a loop."""


def turns(scope: ast.AST, names: Names, call: ast.expr) -> list[dict[str, Any]]:
    """The variables of the innermost loop around a call, turn by turn; a turn without any if they are not known."""
    head = _heads_in(scope).get(id(call))
    if head is None or not _is_sure(scope, head):
        return [{}]
    items = _items(names, head.source) or []
    return [dict(_bound(head.target, item)) for item in items[:_TURNS]] or [{}]


def items_of(names: Names, source: ast.expr) -> list[Any] | None:
    """What the first turns of a loop over a source would have; None if it is not known."""
    found = _items(names, source)
    return None if found is None else found[:_TURNS]


def element_turn(scope: ast.AST, names: Names, node: ast.AST) -> dict[str, Any]:
    """Sizes of the variables of a comprehension around an expression in its first turn, which no filter may leave out.

    No values: a later line may have changed them.
    """
    head = _heads_in(scope).get(id(node))
    if head is None or head.of is None or head.of.generators[0].ifs or not _is_sure(scope, head):
        return {}
    items = _items(names, head.source) or []
    bound = dict(_bound(head.target, items[0])) if items else {}
    shapes = {name: shape_of(value) for name, value in bound.items()}
    return {name: Sized(shape) if shape is not None else UNKNOWN for name, shape in shapes.items()}


@lru_cache(maxsize=64)
def _heads_in(scope: ast.AST) -> dict[int, Head]:
    """The innermost loop around each call, operation and subscript of a scope."""
    found: dict[int, Head] = {}
    stack: list[tuple[ast.AST, Head | None]] = [(child, None) for child in syntax.children(scope)]
    while stack:
        node, head = stack.pop()
        if isinstance(node, IN_ELEMENTS) and head is not None:
            found[id(node)] = head
        if isinstance(node, syntax.INNER):
            continue
        own = _head_of(node)
        outside = () if own is None else (own.source,)
        stack.extend((one, head if one in outside or own is None else own) for one in syntax.children(node))
    return found


def _head_of(node: ast.AST) -> Head | None:
    if isinstance(node, ast.For):
        return Head(node.target, node.iter, node.lineno)
    plain = isinstance(node, syntax.COMPREHENSIONS) and len(node.generators) == 1
    return Head(node.generators[0].target, node.generators[0].iter, node.lineno, node) if plain else None  # type: ignore[attr-defined]


def first_turn(loop: ast.For, names: Names) -> dict[str, Any]:
    """What the variables of a loop stood for in its first turn; none if it had none, or that is not known."""
    items = _items(names, loop.iter) or []
    return dict(_bound(loop.target, items[0])) if items else {}


def _is_sure(scope: ast.AST, head: Head) -> bool:
    """True if nothing else gives the variables a value, and nothing later what the loop goes through."""
    stores = stores_in(scope)
    targets = {one.id for one in syntax.walk(head.target) if isinstance(one, ast.Name)}
    sources = {one.id for one in syntax.walk(head.source) if isinstance(one, ast.Name)}
    once = all(len(stores.get(name, ())) == 1 for name in targets)
    return once and all(
        len(lines) <= 1 and max(lines, default=0) < head.line for n in sources for lines in [stores.get(n, [])]
    )


def _items(names: Names, source: ast.expr) -> list[Any] | None:
    """What a loop goes through, as far as it is of interest; None if it is not known."""
    if isinstance(source, (ast.List, ast.Tuple)):
        return [names.value(one) for one in source.elts[:_TURNS]]
    if isinstance(source, ast.Call):
        return _items_of_call(names, source)
    if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
        parts = (source.slice.lower, source.slice.upper, source.slice.step)
        bounds = [names.value(one) if one is not None else None for one in parts]
        plain = all(one is None or type(one) is int for one in bounds) and bounds[2] != 0
        return _first(names.value(source.value), slice(*bounds)) if plain else None
    return _first(names.value(source), slice(None))


def _items_of_call(names: Names, call: ast.Call) -> list[Any] | None:
    """Those of `zip`, `enumerate` and `range`."""
    if dotted(call.func) in _RANGES:
        if len(call.args) == 1 and isinstance(call.args[0], ast.Call) and dotted(call.args[0].func) == "len":
            return [0]  # how many there are does not matter to the first one
        bounds = [names.value(one) for one in call.args]
        plain = bool(bounds) and all(type(one) is int for one in bounds) and (len(bounds) < 3 or bounds[2] != 0)  # noqa: PLR2004
        return [*range(*bounds)[:1]] if plain else None  # one number is as good as another
    name, parts = dotted(call.func), [_items(names, one) for one in call.args]
    known = [part for part in parts if part is not None]
    if name == "enumerate" and len(call.args) == len(known) == 1:
        return list(enumerate(known[0]))
    return list(zip(*known, strict=False)) if name == "zip" and known and len(known) == len(parts) else None


def _first(owner: Any, part: slice) -> list[Any] | None:
    """The first entries of a plain list, or rows of a plain tensor."""
    if is_one_of(owner, (list, tuple)):
        return [owner[i] for i in range(len(owner))[part][:_TURNS]]
    if type(owner) is torch.Tensor and owner.dim() and not owner.requires_grad and owner.is_cpu:
        return [owner[i] for i in range(owner.shape[0])[part][:_TURNS]]
    return None


def _bound(target: ast.expr, item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(target, ast.Name):
        yield target.id, item
    elif isinstance(target, (ast.Tuple, ast.List)):
        known = is_one_of(item, (list, tuple)) and len(item) == len(target.elts)
        for one, value in zip(target.elts, item if known else [UNKNOWN] * len(target.elts), strict=True):
            yield from _bound(one, value)
