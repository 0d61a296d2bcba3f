"""Layers in plain lists, tuples and dicts of a module: their parameters are not among those of the module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import Place, UnlistedFact, syntax
from torch_inspector.observe import kinds, layers, sorts
from torch_inspector.observe.containers import SORTS, containers_of, first_elements, has_odd_keys
from torch_inspector.observe.loose import loose_facts, stranger_fact
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.place import CodeFile

_GROWS = ("append", "extend", "insert", "appendleft", "update", "setdefault")


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
            yield from _facts_of(path, module, named, held, _Outside(path, names))


class _Outside:
    """What other variables lead to. Holds the user's objects: drop it at once."""

    def __init__(self, path: str, names: Names) -> None:
        self._path, self._names = path, names
        self._modules = [one for own, one in names.modules if _is_outside(path, own)]

    def lends(self, strangers: dict[int, Any]) -> bool:
        """True for layers that are another module's."""
        return _is_borrowed(self._modules, strangers)

    def parameters(self) -> frozenset[int]:
        """Parameters of other modules, and those to which a variable of their own leads."""
        parts = (id(p) for one in self._modules for _, p in layers.walk_parameters(one))
        own = (id(tensor) for path, tensor in self._names.tensors if _is_outside(self._path, path))
        return frozenset((*parts, *own))


def _is_outside(path: str, other: str) -> bool:
    return other != path and not other.startswith((f"{path}.", f"{path}["))


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


def _facts_of(
    path: str,
    module: Any,
    named: dict[int, str],
    held: frozenset[int],
    outside: _Outside,
) -> Iterator[UnlistedFact]:
    """The same for one module and all below it."""
    known = lru_cache(maxsize=1)(lambda: {id(part) for _, part in layers.walk_modules(module)})
    own = lru_cache(maxsize=1)(lambda: outside.parameters().union(id(p) for _, p in layers.walk_parameters(module)))
    closed: dict[int, bool] = {}
    for name, one in layers.walk_modules(module) if not _lists_itself(type(module)) else ():
        kind = type(one)
        if id(kind) not in closed:
            closed[id(kind)] = is_torch(kind) or _lists_itself(kind)
        if closed[id(kind)]:
            continue
        for attribute, container, parts in _containers(one):
            strangers = {id(part): part for part in parts if id(part) not in known()}
            fact = _fact(layers.typed_path(path, module, name), strangers, held)
            if fact is not None and not outside.lends(strangers):
                elsewhere = any(not named.get(key, path).startswith(path) for key in strangers)
                sort = kinds.class_name(container)
                fact = fact._replace(attribute=attribute, container=sort, named_elsewhere=elsewhere)
                yield _with_inner(fact._replace(kind=kinds.class_name(one)), container)
        for fact in loose_facts(one, own, held):
            yield fact._replace(module=layers.typed_path(path, module, name))


def _lists_itself(kind: type[Any]) -> bool:
    """True for a class that says in its own words which parameters it has."""
    own = (kinds.class_fields(base) for base in kinds.mro_of(kind) if not is_torch(base))
    return any("parameters" in fields or "named_parameters" in fields for fields in own)


def is_torch(kind: type[Any]) -> bool:
    """True for layers that are torch's own: they keep nothing in plain containers."""
    return sorts.module_of(kind).partition(".")[0] in ("torch", "torchvision")


def _containers(module: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, container and layers of each plain container that is an attribute and has some."""
    for name, value, _ in containers_of(module):
        found = list(_layers_in(value))
        if found:
            yield name, value, found


def _layers_in(value: Any, depth: int = 1) -> Iterator[Any]:
    """Modules in a container, and in the containers in it."""
    for one in first_elements(value):
        if kinds.is_a(one, torch.nn.Module):
            yield one
        elif depth:
            yield from _layers_in(one, depth - 1)


def _with_inner(fact: UnlistedFact, container: Any) -> UnlistedFact:
    """The same with the containers in it, if it holds nothing else."""
    parts = first_elements(container)
    fact = fact._replace(odd_keys=any(map(has_odd_keys, (container, *parts))))
    plain = {id(type(part)) for part in parts}
    if len(plain) != 1 or not kinds.is_one_of(parts[0], SORTS):
        return fact
    if not all(kinds.is_a(one, torch.nn.Module) for part in parts for one in first_elements(part)):
        return fact
    return fact._replace(inner=kinds.class_name(parts[0]), inner_count=len(parts))


def _fact(owner: str, strangers: dict[int, Any], held: frozenset[int]) -> UnlistedFact | None:
    """What is known of some layers that a module does not know of; None if there is nothing to train in them."""
    owned = {key: list(layers.walk_parameters(one)) for key, one in strangers.items()}
    parameters = {id(p): p for some in owned.values() for _, p in some}
    fact = stranger_fact(parameters, held)
    if not fact.trainable_keys:
        return None
    first = next(one for key, one in strangers.items() if owned[key])
    return fact._replace(
        module=owner,
        count=sum(map(bool, owned.values())),
        layer_kind=kinds.class_name(first),
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
