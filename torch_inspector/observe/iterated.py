"""What the variables of a loop stood for in its first turns, where what it goes through is still there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of, module_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.pairs import TreeOf, built_by
from torch_inspector.observe.shapes import UNKNOWN
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in

# The first turns speak for all.
_TURNS = 3
# No variable of the user's can have such a name.
_DATASET = "dataset of a loader"


class Head(NamedTuple):
    """`for target in source`, of a loop or of a comprehension."""

    target: ast.expr
    source: ast.expr
    line: int


def turns(scope: ast.AST, names: Names, call: ast.Call) -> list[dict[str, Any]]:
    """The variables of the innermost loop around a call, turn by turn; a turn without any if they are not known."""
    head = _heads_in(scope).get(id(call))
    if head is None or not _is_sure(scope, head):
        return [{}]
    items = _items(names, head.source) or []
    return [dict(_bound(head.target, item)) for item in items[:_TURNS]] or [{}]


def fetches(scope: ast.AST, names: Names, tree_of: TreeOf) -> Iterator[tuple[ast.Call, dict[str, Any]]]:
    """Calls of `__getitem__` that loops over a loader and `dataset[0]` bring about; what a name in them stands for."""
    for item in _items_asked(scope):
        owner = names.value(item.value)
        built = built_by(item.value, names, tree_of) if owner is UNKNOWN else None
        if built is not None or is_a(owner, Dataset) or module_of(type(owner)) == "__main__":
            func = ast.Attribute(
                item.value if built is None else ast.Name(_DATASET, ast.Load()), "__getitem__", ast.Load()
            )
            yield ast.Call(func, [item.slice], []), {} if built is None else {_DATASET: built}
    for source in _sources_in(scope):
        dataset = _dataset_in(names, source, tree_of)
        if dataset is not UNKNOWN:
            for index in range(_TURNS - 1):
                owner = ast.Name(_DATASET, ast.Load())
                func = ast.Attribute(owner, "__getitem__", ast.Load())
                yield ast.Call(func, [ast.Constant(index)], []), {_DATASET: dataset}


@lru_cache(maxsize=64)
def _items_asked(scope: ast.AST) -> tuple[ast.Subscript, ...]:
    """`dataset[0]` and the like in a scope: what is read by a plain number."""
    read = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Subscript)]
    return tuple(one for one in read if isinstance(one.ctx, ast.Load) and type(getattr(one.slice, "value", "")) is int)


def _dataset_in(names: Names, source: ast.expr, tree_of: TreeOf) -> Any:
    """That of a loader, or of `DataLoader(dataset, …)` in the loop itself."""
    made = isinstance(source, ast.Call) and names.value(source.func) is DataLoader
    if isinstance(source, ast.Call) and made and source.args:
        special = any(one.arg is None or "sampler" in one.arg for one in source.keywords)
        if special:
            return UNKNOWN
        dataset = names.value(source.args[0])
        return dataset if dataset is not UNKNOWN else built_by(source.args[0], names, tree_of) or UNKNOWN
    return _dataset(names.value(source))


def _dataset(loader: Any) -> Any:
    """What a loader asks for one item after the other, by their numbers."""
    fields = fields_of(loader) if is_a(loader, DataLoader) else {}
    plain = is_one_of(fields.get("sampler"), (RandomSampler, SequentialSampler))
    return fields.get("dataset", UNKNOWN) if plain else UNKNOWN


@lru_cache(maxsize=64)
def _sources_in(scope: ast.AST) -> tuple[ast.expr, ...]:
    """What loops of a scope go through, and what `next(iter(…))` is asked of."""
    found: list[ast.expr] = []
    for node in syntax.own_expressions(scope):
        if isinstance(node, (ast.For, ast.comprehension)):
            found.append(node.iter)
        elif isinstance(node, ast.Call) and dotted(node.func) == "iter" and node.args:
            found.append(node.args[0])
    return tuple(map(_inner, found))


def _inner(source: ast.expr) -> ast.expr:
    """The loader in `enumerate(tqdm(loader))`."""
    while isinstance(source, ast.Call) and source.args and dotted(source.func) in {"enumerate", "tqdm"}:
        source = source.args[0]
    return source


@lru_cache(maxsize=64)
def _heads_in(scope: ast.AST) -> dict[int, Head]:
    """The innermost loop around each call of a scope."""
    found: dict[int, Head] = {}
    stack: list[tuple[ast.AST, Head | None]] = [(child, None) for child in syntax.children(scope)]
    while stack:
        node, head = stack.pop()
        if isinstance(node, ast.Call) and head is not None:
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
    return Head(node.generators[0].target, node.generators[0].iter, node.lineno) if plain else None  # type: ignore[attr-defined]


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
    """Those of `zip` and of `enumerate`."""
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
