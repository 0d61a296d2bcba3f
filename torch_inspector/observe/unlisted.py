"""Layers in plain lists, tuples and dicts of a module: their parameters are not among those of the module."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import Place, UnlistedFact, syntax
from torch_inspector.observe import kinds, layers, sorts
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.place import CodeFile

# Elements of one container that are looked at.
_ELEMENTS = 64
# By exact type: a subclass may be a container of the user's own that the module knows of.
_SORTS: dict[type[Any], str] = {
    list: "list",
    tuple: "tuple",
    deque: "deque",
    **dict.fromkeys((dict, OrderedDict, defaultdict), "mapping"),
}
_TORCHS_OWN = frozenset(torch.nn.Module().__dict__)
_GROWS = ("append", "extend", "insert", "appendleft", "update", "setdefault")


class _Loose(NamedTuple):
    """A plain container with parameters in it. Holds the user's objects: drop it at once."""

    attribute: str
    container: Any
    parameters: list[Any]


def unlisted_facts(modules: list[tuple[str, Any]], names: Names, held: frozenset[int]) -> Iterator[UnlistedFact]:
    """One fact per plain container with layers in some modules.

    Args:
        modules: Paths and modules that are looked into.
        names: What the walk of the variables found.
        held: Addresses of the parameters that optimizers hold.
    """
    named = {id(module): path for path, module in names.modules}
    inside = {id(one) for _, module in modules for _, one in _own_parts(module)} if len(modules) > 1 else set()
    for path, module in modules:
        if id(module) not in inside:
            borrowed = partial(
                _is_borrowed,
                [one for own, one in names.modules if own != path and not own.startswith((f"{path}.", f"{path}["))],
            )
            yield from facts_of(path, module, named, held, borrowed)


def _own_parts(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules below a module, itself left out."""
    parts = layers.walk_modules(module)
    next(parts, None)
    yield from parts


def _is_borrowed(others: list[Any], strangers: dict[int, Any]) -> bool:
    """True for parts of another module that has a name, as slices of a network whose features are compared."""
    parts = {id(p) for one in strangers.values() for _, p in layers.walk_parameters(one)}
    wholes = [one for one in others if id(one) not in strangers]
    return any(parts < {id(p) for _, p in layers.walk_parameters(one)} for one in wholes) or (
        len(strangers) > 1 and any(parts == {id(p) for _, p in layers.walk_parameters(one)} for one in wholes)
    )


def facts_of(
    path: str,
    module: Any,
    named: dict[int, str],
    held: frozenset[int],
    borrowed: Callable[[dict[int, Any]], bool] = lambda _: False,
) -> Iterator[UnlistedFact]:
    """The same for one module and all below it; layers that are `borrowed` are another module's."""
    known, own = set[int](), frozenset[int]()
    torchs: dict[int, bool] = {}
    for name, one in layers.walk_modules(module):
        if id(type(one)) not in torchs:
            torchs[id(type(one))] = is_torch(type(one))
        if torchs[id(type(one))]:
            continue
        for attribute, container, parts in _containers(one):
            known = known or {id(part) for _, part in layers.walk_modules(module)}
            strangers = {id(part): part for part in parts if id(part) not in known}
            owner = layers.typed_path(path, module, name)
            fact = _fact(owner, strangers, held)
            if fact is not None and not borrowed(strangers):
                elsewhere = any(not named.get(key, path).startswith(path) for key in strangers)
                kind = kinds.class_name(one)
                fact = fact._replace(kind=kind, attribute=attribute, container=container, named_elsewhere=elsewhere)
                yield _with_inner(fact, kinds.fields_of(one).get(attribute))
        for loose in _loose(one):
            own = own or frozenset(id(p) for _, p in layers.walk_parameters(module))
            fact = _of_parameters(one, loose, own, held)
            if fact is not None:
                yield fact._replace(module=layers.typed_path(path, module, name))


def is_torch(kind: type[Any]) -> bool:
    """True for layers that are torch's own: they keep nothing in plain containers."""
    return sorts.module_of(kind).partition(".")[0] in ("torch", "torchvision")


def _containers(module: Any) -> Iterator[tuple[str, str, list[Any]]]:
    """Name, kind and layers of each plain container that is an attribute."""
    for name, value in list(kinds.fields_of(module).items()):
        sort = kinds.entry_of(type(value), _SORTS) if name not in _TORCHS_OWN else None
        found = list(_layers_in(sort, value)) if sort is not None else []
        if found and type(name) is str:
            yield name, kinds.class_name(value), found


def _loose(module: Any) -> Iterator[_Loose]:
    """The plain containers that are attributes and have parameters in them."""
    for name, value in list(kinds.fields_of(module).items()):
        sort = kinds.entry_of(type(value), _SORTS) if name not in _TORCHS_OWN else None
        elements = sorts.elements(sort, value, _ELEMENTS) if sort is not None else ()
        found = [one for one in elements if kinds.is_a(one, torch.nn.Parameter)]
        if found and type(name) is str:
            yield _Loose(name, value, found)


def _layers_in(sort: str, value: Any, depth: int = 1) -> Iterator[Any]:
    """Modules in a container, and in the containers in it."""
    for one in sorts.elements(sort, value, _ELEMENTS):
        if kinds.is_a(one, torch.nn.Module):
            yield one
        elif depth and kinds.is_one_of(one, _SORTS):
            yield from _layers_in(_SORTS[type(one)], one, depth - 1)


def _with_inner(fact: UnlistedFact, container: Any) -> UnlistedFact:
    """The same with the containers in it, if it holds nothing else."""
    parts = sorts.elements(_SORTS[type(container)], container, _ELEMENTS) if kinds.is_one_of(container, _SORTS) else []
    fact = fact._replace(odd_keys=any(map(_has_odd_keys, (container, *parts))))
    plain = {id(type(part)) for part in parts}
    if len(plain) != 1 or not kinds.is_one_of(parts[0], _SORTS):
        return fact
    inside = (one for part in parts for one in sorts.elements(_SORTS[type(part)], part, _ELEMENTS))
    if not all(kinds.is_a(one, torch.nn.Module) for one in inside):
        return fact
    return fact._replace(inner=kinds.class_name(parts[0]), inner_count=len(parts))


def _of_parameters(module: Any, loose: _Loose, own: frozenset[int], held: frozenset[int]) -> UnlistedFact | None:
    """What is known of the parameters in a container that the module does not know of."""
    strangers = {id(p): p for p in loose.parameters if id(p) not in own and p.requires_grad}
    if not strangers:
        return None
    return UnlistedFact(
        module="",
        kind=kinds.class_name(module),
        attribute=loose.attribute,
        container=kinds.class_name(loose.container),
        count=len(strangers),
        layer_kind="Parameter",
        parameter_count=sum(layers.number_of(p) for p in strangers.values()),
        trainable_keys=frozenset(strangers),
        named_elsewhere=False,
        held=bool(held & strangers.keys()),
        training=kinds.fields_of(module).get("training") is True,
        loose=True,
        odd_keys=_has_odd_keys(loose.container),
    )


def _has_odd_keys(container: Any) -> bool:
    """True for a dictionary with a key that is no string, or has a dot in it."""
    if kinds.entry_of(type(container), _SORTS) != "mapping":
        return False
    keys = list(islice(dict.keys(container), _ELEMENTS))
    return any(type(key) is not str or "." in key or not key for key in keys)


def _fact(owner: str, strangers: dict[int, Any], held: frozenset[int]) -> UnlistedFact | None:
    """What is known of some layers that a module does not know of; None if there is nothing to train in them."""
    owned = {key: list(layers.walk_parameters(one)) for key, one in strangers.items()}
    parameters = {id(p): p for some in owned.values() for _, p in some}
    trainable = frozenset(key for key, p in parameters.items() if p.requires_grad)
    if not trainable:
        return None
    first = next(one for key, one in strangers.items() if owned[key])
    return UnlistedFact(
        module=owner,
        kind="",
        attribute="",
        container="",
        count=sum(map(bool, owned.values())),
        layer_kind=kinds.class_name(first),
        parameter_count=sum(layers.number_of(p) for p in parameters.values()),
        trainable_keys=trainable,
        named_elsewhere=False,
        held=bool(held & parameters.keys()),
        training=_trains(first),
    )


def _trains(module: Any) -> bool:
    """True if its first part with parameters is in train mode: a slice of a `Sequential` in eval mode is new itself."""
    parts = (one for _, one in layers.walk_modules(module) if kinds.fields_of(one).get("_parameters"))
    return kinds.fields_of(next(parts, module)).get("training") is True


def with_lines(facts: Iterable[UnlistedFact], files: list[CodeFile]) -> tuple[UnlistedFact, ...]:
    """The same with the line of the class that fills the attribute."""
    return tuple(fact._replace(place=_place(fact, files)) for fact in facts)


def _place(fact: UnlistedFact, files: list[CodeFile]) -> Place | None:
    for file in files:
        if fact.attribute in file.code and file.tree is not None:
            line = _line(file.tree, fact)
            if line is not None:
                return Place(file.cell, line + file.offset)
    return None


def _line(tree: ast.Module, fact: UnlistedFact) -> int | None:
    """The line in its class, or elsewhere, that gives the attribute its value: of several the first in the class."""
    classes = [n for n in syntax.walk(tree) if isinstance(n, ast.ClassDef) and n.name == fact.kind]
    for scope in (*classes, tree):
        statements = (node for node in syntax.walk(scope) if isinstance(node, ast.stmt))
        lines = [node.lineno for node in statements if _fills(node, fact.attribute)]
        if lines:
            return min(lines)
    return None


def _fills(node: ast.stmt, attribute: str) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(one, ast.Attribute) and one.attr == attribute for one in targets)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _GROWS:
        return False
    return dotted(call.func.value).endswith(f".{attribute}")
