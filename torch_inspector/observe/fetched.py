"""Calls that a text brings about without writing them: `dataset[i]`, loops over a dataset or a loader, `map(f, xs)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any, NamedTuple

from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, Subset

from torch_inspector.facts import syntax
from torch_inspector.observe.iterated import items_of, turns
from torch_inspector.observe.kinds import class_fields, fields_of, is_a, is_among, is_one_of, module_of, mro_of
from torch_inspector.observe.new_objects import made_by_class
from torch_inspector.observe.operands import Built, Names
from torch_inspector.observe.pairs import TreeOf
from torch_inspector.observe.shapes import UNKNOWN
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in

# No variable of the user's can have such names.
_DATASET, _INDEX, _ITEM = "dataset of a loader", "index of a loader", "item of a map"
# Items that a loader asks for in its first batch, at least; subscripts of one scope that are looked at.
_FIRST, _MOST = 2, 40
# What goes through all that it is given.
_WHOLE = frozenset(["list", "tuple", "set", "sorted", "sum", "max", "min", "dict"])
_AROUND = frozenset(["enumerate", "tqdm", "iter", "reversed", "zip"])


class Fetch(ast.Call):
    """A call that stands in no text."""

    site: ast.AST
    """What brings it about, in the text."""


class _Source(NamedTuple):
    """What a loop takes one thing after the other from."""

    owner: Any
    by_number: bool
    """True if it is asked by numbers, even if it could be gone through."""
    number: ast.expr | None = None
    """The number, where it is not one after the other from 0."""


def fetches(scope: ast.AST, names: Names, tree_of: TreeOf) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    """Such calls of a scope, each with what the names in it stand for that are not in the text."""
    yield from _by_number(scope, names, tree_of)
    for source in _sources_in(scope):
        found = _source(names, source, tree_of)
        if found is not None and not _is_given_later(scope, source):
            yield from _gone_through(found, source)
    for call in _maps_in(scope):
        yield from _mapped(names, call)


def _by_number(scope: ast.AST, names: Names, tree_of: TreeOf) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    """`dataset[i]` calls `__getitem__`, with the `i` of the loop or comprehension around it."""
    for item in _items_asked(scope):
        owner = names.value(item.value)
        built = made_by_class(item.value, names, tree_of) if owner is UNKNOWN else None
        if (built is None and not _is_of_user(owner)) or _is_given_later(scope, item.value):
            continue
        of = item.value if built is None else ast.Name(_DATASET, ast.Load())
        more = {} if built is None else {_DATASET: built}
        for turn in turns(scope, names, item):
            yield _fetch(of, "__getitem__", [item.slice], item), {**turn, **more}


def _gone_through(source: _Source, site: ast.expr) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    known, of = {_DATASET: source.owner}, ast.Name(_DATASET, ast.Load())
    if not source.by_number and _has_own(source.owner, "__iter__"):
        yield _fetch(of, "__iter__", [], site), known
    elif source.number is not None:
        yield _fetch(of, "__getitem__", [source.number], site), known
    else:
        for index in range(_FIRST):
            yield _fetch(of, "__getitem__", [ast.Constant(index)], site), known


def _mapped(names: Names, call: ast.Call) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    """`f(x)` for the first items of `map(f, xs)`."""
    columns = [items_of(names, one) for one in call.args[1:]]
    items = [f"{_ITEM} {at}" for at in range(len(columns))]
    rows = list(zip(*(one for one in columns if one is not None), strict=False)) if None not in columns else [()]
    for row in rows:
        yield (
            _placed(Fetch(call.args[0], [ast.Name(one, ast.Load()) for one in items], []), call),
            dict(zip(items, row, strict=False)),
        )


def _fetch(owner: ast.expr, method: str, given: list[ast.expr], site: ast.expr) -> Fetch:
    return _placed(Fetch(ast.Attribute(owner, method, ast.Load()), given, []), site)


def _placed(call: Fetch, site: ast.expr) -> Fetch:
    call.site = site
    ast.copy_location(call, site)
    return ast.fix_missing_locations(call)


def _source(names: Names, source: ast.expr, tree_of: TreeOf) -> _Source | None:
    """What a loop over a loader, a dataset, or a new one of either asks."""
    made = isinstance(source, ast.Call) and names.value(source.func) is DataLoader
    if isinstance(source, ast.Call) and made:
        given = [*source.args[:1], *(one.value for one in source.keywords if one.arg == "dataset")]
        special = any(one.arg is None or "sampler" in one.arg for one in source.keywords)
        found = None if special or not given else _owner(names, given[0], tree_of)
        return _of_loader(found) if found is not None else None
    owner = _owner(names, source, tree_of)
    if not is_a(owner, DataLoader):
        of_user = owner is not None and (type(owner) is Built or _is_of_user(owner))
        return _Source(owner, by_number=False) if of_user else None
    fields = fields_of(owner)
    plain = is_one_of(fields.get("sampler"), (RandomSampler, SequentialSampler))
    dataset = fields.get("dataset")
    return _of_loader(dataset) if plain or is_a(dataset, IterableDataset) else None


def _of_loader(dataset: Any) -> _Source:
    kind = dataset.kind if type(dataset) is Built else type(dataset)
    if is_a(dataset, Subset):
        fields = fields_of(dataset)
        chosen: Any = fields.get("indices")
        known = type(chosen) is list and len(chosen) > 0 and type(chosen[0]) is int
        number = ast.Constant(chosen[0]) if known else ast.Name(_INDEX, ast.Load())
        return _Source(fields.get("dataset", UNKNOWN), by_number=True, number=number)
    return _Source(dataset, by_number=not is_among(IterableDataset, mro_of(kind)))


def _owner(names: Names, source: ast.expr, tree_of: TreeOf) -> Any:
    """What an expression stands for, or what it has made; None if that is not known."""
    owner = names.value(source)
    return made_by_class(source, names, tree_of) if owner is UNKNOWN else owner


def _is_of_user(owner: Any) -> bool:
    return is_a(owner, Dataset) or module_of(type(owner)) == "__main__"


def _has_own(owner: Any, method: str) -> bool:
    kind = owner.kind if type(owner) is Built else type(owner)
    return any(type(class_fields(one).get(method)) is FunctionType for one in mro_of(kind))


def _is_given_later(scope: ast.AST, owner: ast.expr) -> bool:
    """True if a later line gives the name of a dataset another value: what it was is not known."""
    lines = stores_in(scope).get(syntax.root_of(owner), ())
    return any(line > owner.lineno for line in lines)


@lru_cache(maxsize=64)
def _items_asked(scope: ast.AST) -> tuple[ast.Subscript, ...]:
    """`dataset[i]` and the like in a scope; of what an expression makes only what is read by a plain number."""
    read = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Subscript)]
    loads = [one for one in read if isinstance(one.ctx, ast.Load) and not isinstance(one.slice, (ast.Slice, ast.Tuple))]
    plain = [
        one
        for one in loads
        if isinstance(one.value, (ast.Name, ast.Attribute)) or type(getattr(one.slice, "value", "")) is int
    ]
    return tuple(plain[:_MOST])


@lru_cache(maxsize=64)
def _sources_in(scope: ast.AST) -> tuple[ast.expr, ...]:
    """What loops of a scope go through, what `list(…)` does, and what `next(iter(…))` is asked of."""
    found: list[ast.expr] = []
    for node in syntax.own_expressions(scope):
        if isinstance(node, (ast.For, ast.comprehension)):
            found.extend(_inner(node.iter))
        elif isinstance(node, ast.Call) and dotted(node.func) in {"iter", *_WHOLE} and node.args:
            found.extend(_inner(node.args[0]))
        elif isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load):
            found.extend(_inner(node.value))
    return tuple({id(one): one for one in found}.values())


def _inner(source: ast.expr) -> Iterator[ast.expr]:
    """The loader in `enumerate(tqdm(loader))`, both datasets in `zip(one, two)`."""
    if isinstance(source, ast.Call) and source.args and dotted(source.func) in _AROUND:
        for one in source.args if dotted(source.func) == "zip" else source.args[:1]:
            yield from _inner(one)
    else:
        yield source


@lru_cache(maxsize=64)
def _maps_in(scope: ast.AST) -> tuple[ast.Call, ...]:
    """Calls of `map` of which all is taken: `list(map(f, xs))`, `for y in map(f, xs)`."""
    calls = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Call)]
    maps = [one for one in calls if dotted(one.func) == "map" and len(one.args) > 1 and not one.keywords]
    parents = syntax.parents(scope) if maps else {}
    return tuple(one for one in maps if _is_taken(one, parents.get(id(one))))


def _is_taken(call: ast.Call, parent: ast.AST | None) -> bool:
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is call
    return isinstance(parent, ast.Starred) or (isinstance(parent, ast.Call) and dotted(parent.func) in _WHOLE)
