"""Objects of the user's classes that have no name, as far as the text of their constructor tells what they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe.arguments import parameters_in
from torch_inspector.observe.definitions import definition
from torch_inspector.observe.kinds import class_fields, is_a
from torch_inspector.observe.operands import Built, Names
from torch_inspector.observe.shapes import UNKNOWN

if TYPE_CHECKING:
    from torch_inspector.observe.pairs import TreeOf


def built_by(call: ast.expr, names: Names, tree_of: TreeOf) -> Built | None:
    """The object that a call of a class of the user's made: attributes that `__init__` gives its arguments as they are.

    And those whose sizes its text tells. None where it gives none, or any statement of the class gives them a value
    again.
    """
    kind: Any = names.value(call.func) if isinstance(call, ast.Call) else UNKNOWN
    init = class_fields(kind).get("__init__") if is_a(kind, type) else None
    tree = tree_of(init.__code__) if type(init) is FunctionType else None
    if not isinstance(call, ast.Call) or not isinstance(init, FunctionType) or tree is None:
        return None
    values = parameters_in(call, names, init, None)
    inside = Names(values, init.__globals__)
    kept = ((field, inside.value(value)) for field, value in _kept_by(tree, init.__code__))
    fields = {field: value for field, value in kept if value is not UNKNOWN}
    return Built(kind, fields) if fields else None


def made_by_class(call: ast.expr, names: Names, tree_of: TreeOf) -> Built | None:
    """The object that a call of a class of the user's made; none of its attributes may be known."""
    kind: Any = names.value(call.func) if isinstance(call, ast.Call) else UNKNOWN
    return (built_by(call, names, tree_of) or Built(kind, {})) if is_a(kind, type) else None


def _kept_by(tree: ast.Module, init: CodeType) -> Iterator[tuple[str, ast.expr]]:
    """Attributes that a class gives a value only once: a parameter of its constructor, or what a call makes."""
    found = definition(tree, init)
    owner = next((one for one in syntax.walk(tree) if type(one) is ast.ClassDef and found in one.body), None)
    if not isinstance(found, ast.FunctionDef) or owner is None:
        return
    stored = [one.attr for one in syntax.walk(owner) if type(one) is ast.Attribute and type(one.ctx) is ast.Store]
    anew = {one.id for one in syntax.walk(found) if type(one) is ast.Name and type(one.ctx) is ast.Store}
    for target, value in _sides(found.body):
        told = type(value) is ast.Call or (type(value) is ast.Name and value.id in syntax.parameters_of(found))
        plain = type(target) is ast.Attribute and value is not None and told and not syntax.names_in(value) & anew
        if plain and stored.count(target.attr) == 1:  # type: ignore[attr-defined]
            yield target.attr, value  # type: ignore[attr-defined,misc]


def _sides(body: list[ast.stmt]) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Both sides of the assignments of a function, those of `self.a, self.b = a, b` one by one."""
    for one in body:
        if isinstance(one, ast.AnnAssign):
            yield one.target, one.value
        elif isinstance(one, ast.Assign):
            target, value = one.targets[0], one.value
            apart = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            yield from zip(target.elts, value.elts, strict=False) if apart else [(target, value)]  # type: ignore[attr-defined]
