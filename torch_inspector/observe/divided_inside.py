"""What the functions of the user's divide by that a statement calls, in the words of the statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import nn

from torch_inspector.facts import syntax
from torch_inspector.facts.taken_apart import given_in
from torch_inspector.observe import kinds
from torch_inspector.observe.definitions import Function, definition
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.half_givers import divisor_of, names_of_numbers

# Functions that call each other, and names in a row, that are followed.
_DEEPEST = 3
_NUMBERS = (int, float)


class _Body(NamedTuple):
    """A function that is called, with what it is given."""

    node: Function
    given: dict[str, ast.expr]
    kind: type[Any] | None
    """The class whose method it is."""
    owner: Any
    """Its object, where that is known."""


def divisors_inside(node: ast.AST, scope: Scope) -> Iterator[ast.expr | None]:
    """Arguments that are divided by, as the statement has them; None for what is computed inside, or kept there."""
    yield from _inside(node, scope, None, 0)


def _inside(node: ast.AST, scope: Scope, around: _Body | None, depth: int) -> Iterator[ast.expr | None]:
    calls = (one for one in syntax.walk(node) if isinstance(one, ast.Call))
    bodies = (_called(one, scope, around) for one in calls) if depth < _DEEPEST else ()
    for body in filter(None, bodies):
        by = (one for part in syntax.walk(body.node) if (one := divisor_of(part)) is not None)
        told = [one for divisor in by for one in _said_outside(divisor, body, scope)]
        told += _inside(body.node, scope, body, depth + 1)
        yield from told if around is None else (_in_names_of(around, one) for one in told)


def _in_names_of(around: _Body, given: ast.expr | None) -> ast.expr | None:
    """What a function hands on, as the one that calls it says it; numbers are what they are."""
    if isinstance(given, ast.Name):
        return around.given.get(given.id) if given.id not in given_in(around.node) else None
    return None if given is None or names_of_numbers(given) else given


def _said_outside(divisor: ast.expr, body: _Body, scope: Scope) -> Iterator[ast.expr | None]:
    """The argument that a divisor is; None if it is more; nothing for numbers."""
    if isinstance(divisor, ast.Name) and divisor.id in body.given and divisor.id not in given_in(body.node):
        yield body.given[divisor.id]
    elif not _is_number(divisor, body, scope):
        yield None


def _is_number(node: ast.expr, body: _Body, scope: Scope, depth: int = 0) -> bool:
    """True for what is made of constants, sizes, and fields and variables that hold a number."""
    fields = kinds.fields_of(body.owner) if body.owner is not None else {}
    held = [one for one in syntax.walk(node) if isinstance(one, ast.Attribute) and _is_self(one.value)]
    own = bool(held) and all(kinds.is_one_of(fields.get(one.attr), _NUMBERS) for one in held)
    names = names_of_numbers(node) - ({"self"} if own else set())
    return all(_names_number(one, body, scope, depth) for one in names)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _names_number(name: str, body: _Body, scope: Scope, depth: int) -> bool:
    values = given_in(body.node).get(name, [])
    if values or name in syntax.parameters_of(body.node):
        return bool(values) and depth < _DEEPEST and all(_is_number(one, body, scope, depth + 1) for one in values)
    return kinds.is_one_of(scope.reading.names.get(name), _NUMBERS)


def _called(call: ast.Call, scope: Scope, around: _Body | None) -> _Body | None:
    """The function of the user's that a call leads to, with its arguments."""
    function, kind, owner = _function_of(call.func, scope, around)
    tree = scope.reading.tree_of(function.__code__) if function is not None else None
    node = definition(tree, function.__code__) if tree is not None and function is not None else None
    if node is None or function is None or (around is not None and node is around.node):
        return None
    return _Body(node, _given(node, call, bound=kind is not None), kind, owner)


def _given(node: Function, call: ast.Call, *, bound: bool) -> dict[str, ast.expr]:
    """What a call, or its absence, gives the parameters of a function."""
    args = [*node.args.posonlyargs, *node.args.args][bound:]
    defaults = zip(reversed(args), reversed(node.args.defaults), strict=False)
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    found = {one.arg: value for one, value in defaults}
    found.update((one.arg, value) for one, value in zip(args, call.args if plain else (), strict=False))
    found.update((str(one.arg), one.value) for one in call.keywords if one.arg)
    return found


def _function_of(func: ast.expr, scope: Scope, around: _Body | None) -> tuple[FunctionType | None, Any, Any]:
    """The function that an expression names, with the class and the object that it is a method of."""
    if isinstance(func, ast.Attribute):
        if _is_self(func.value) and around is not None:
            return _method(around.kind, func.attr), around.kind, around.owner
        made = scope.names.value(func.value.func) if isinstance(func.value, ast.Call) else None
        owner = scope.names.value(func.value) if made is None else None
        kind = made if type(made) is type else type(owner)
        return _method(kind, func.attr), kind, owner
    value = scope.names.value(func) if isinstance(func, ast.Name) else None
    if type(value) is FunctionType:
        return value, None, None
    kind = type(value)
    return _method(kind, "forward" if kinds.inherits(kind, nn.Module) else "__call__"), kind, value


def _method(kind: Any, name: str) -> FunctionType | None:
    """A method that a class of the user's has, or inherits from one."""
    if kind is None or kinds.inherits(kind, torch.Tensor):
        return None
    found = (kinds.class_fields(one).get(name) for one in kinds.mro_of(kind))
    first = next((one for one in found if one is not None), None)
    return first if type(first) is FunctionType else None
