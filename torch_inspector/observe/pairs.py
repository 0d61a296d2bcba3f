"""Pairs of operands in the user's code: what is subtracted, or handed to a loss, followed into called functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.facts import syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.arguments import parameters_in
from torch_inspector.observe.definitions import definition
from torch_inspector.observe.each_element import comprehended
from torch_inspector.observe.kinds import class_fields, inherits, is_a, mro_of
from torch_inspector.observe.new_objects import made_by_class
from torch_inspector.observe.operands import Built, Names
from torch_inspector.observe.private import Node
from torch_inspector.observe.shapes import UNKNOWN, is_tensor

TreeOf = Callable[[CodeType], "ast.Module | None"]
"""The parsed cell that a code object comes from; None if it is none of the user's."""

# A training step that calls a method that calls a loss.
_CALLS_DEEP = 4
# Calls that are followed on behalf of one look.
_CALLS = 60
_LOSSES = {
    "mse_loss": nn.MSELoss,
    "l1_loss": nn.L1Loss,
    "smooth_l1_loss": nn.SmoothL1Loss,
    "huber_loss": nn.HuberLoss,
    "poisson_nll_loss": nn.PoissonNLLLoss,
}
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **{name: (getattr(functional, name),) for name in _LOSSES},
    "sub": (torch.sub, torch.subtract),
    "mul": (torch.mul, torch.multiply),
    "div": (torch.div, torch.divide),
    "where": (torch.where,),
}
_METHODS = {"sub": ("sub", "subtract"), "mul": ("mul", "multiply"), "div": ("div", "divide")}
_SIGNS: dict[str, type[ast.operator]] = {"sub": ast.Sub, "mul": ast.Mult, "div": ast.Div}


class Side(NamedTuple):
    """One of two operands."""

    value: Any
    text: ast.expr
    names: Names


class Pair(NamedTuple):
    """Two operands of one operation."""

    left: Side
    right: Side


def pairs_in(scope: ast.AST, names: Names, operation: str, tree_of: TreeOf) -> Iterator[Pair]:
    """All pairs that the code of a scope, and of the functions that it calls, hands to an operation."""
    stack, left = [(scope, names, 0)], _CALLS
    while stack:
        scope, names, depth = stack.pop()
        names = replace(names, given={**comprehended(scope), **names.given})
        for node in syntax.own_expressions(scope):
            operands = _operands(node, names, operation)
            if operands:
                yield Pair(*(Side(names.value(text), text, names) for text in operands))
            elif type(node) is ast.Call and depth < _CALLS_DEEP and left:
                left -= 1
                stack.extend((*one, depth + 1) for one in called(node, names, tree_of))


def scope_of(tree: ast.Module, code: CodeType) -> ast.AST | None:
    """The function or the whole cell that a code object was made of; None if it is not found."""
    return definition(tree, code) if code.co_flags & CO_OPTIMIZED else tree


def _operands(node: ast.AST, names: Names, operation: str) -> list[ast.expr]:
    """The two operands, if a node is this operation."""
    if type(node) is ast.BinOp:
        return [node.left, node.right] if type(node.op) is _SIGNS.get(operation) else []
    if type(node) is not ast.Call:
        return []
    func = node.func
    if type(func) is ast.Attribute and func.attr in _METHODS.get(operation, ()) and len(node.args) == 1:
        return [func.value, node.args[0]]
    given = [*node.args, *(k.value for k in node.keywords if k.arg in ("input", "target", "other"))]
    return given[:2] if len(given) >= 2 and _is_loss(node, names, operation) else []  # noqa: PLR2004


def _is_loss(node: ast.Call, names: Names, operation: str) -> bool:
    callee, kind = names.value(node.func), _LOSSES.get(operation)
    if any(callee is function for function in _FUNCTIONS[operation]):
        return True
    if kind is None:
        return False
    made = names.value(node.func.func) if type(node.func) is ast.Call else UNKNOWN
    return is_a(callee, kind) or made is kind


def called(node: ast.Call, names: Names, tree_of: TreeOf) -> Iterator[tuple[ast.AST, Names]]:
    """The body of a function of the user's that a call runs, with what its names mean there."""
    function, owner = _function(node.func, names, tree_of)
    if type(function) is FunctionType and type(function.__dict__.get("__wrapped__")) is FunctionType:
        function = function.__dict__["__wrapped__"]  # as `@torch.no_grad()` leaves it
    if type(function) is not FunctionType:
        return
    tree = tree_of(function.__code__)
    found = definition(tree, function.__code__) if tree is not None else None
    if found is not None:
        values = {**_closed_over(function), **parameters_in(node, names, function, owner)}
        # Parameters that are given another value.
        first = {name: values[name] for name in _stored(found) & values.keys()}
        values.update(dict.fromkeys(first, UNKNOWN))
        given = {name: value for name, value in _given(found).items() if name not in first}
        yield found, Names(values, function.__globals__, given, first=first)


def _function(callee: ast.expr, names: Names, tree_of: TreeOf) -> tuple[Any, Any]:
    """The function behind a callee, and what it is bound to (`UNKNOWN` if to nothing, None if that is not known)."""
    value = names.value(callee)
    if type(value) is MethodType:
        return value.__func__, value.__self__
    if value is not UNKNOWN:
        return _run_by(value)
    if type(callee) is ast.Call:  # `Loss(0.1)(out, y)`
        built = _unnamed(callee, names, tree_of)
        return _run_by(built) if built is not None else (UNKNOWN, None)
    return _method(callee, names, tree_of) if type(callee) is ast.Attribute else (UNKNOWN, UNKNOWN)


def _run_by(value: Any) -> tuple[Any, Any]:
    """The function that runs where an object is called, and what it is bound to."""
    kind: Any = _kind_of(value)
    own = UNKNOWN if inherits(kind, type) else _of_class(kind, "forward" if inherits(kind, nn.Module) else "__call__")
    return (own, value) if type(own) is FunctionType else (value, UNKNOWN)


def _method(callee: ast.Attribute, names: Names, tree_of: TreeOf) -> tuple[Any, Any]:
    owner = names.value(callee.value)
    if owner is UNKNOWN:  # `Step().loss(batch)`
        owner = _unnamed(callee.value, names, tree_of)
        if owner is None:
            return UNKNOWN, None
    method = _of_class(_kind_of(owner), callee.attr)
    return (method.__func__, UNKNOWN) if type(method) is staticmethod else (method, owner)


def _kind_of(owner: Any) -> type[Any]:
    return owner.kind if type(owner) is Built else type(owner)


def _unnamed(owner: ast.expr, names: Names, tree_of: TreeOf) -> Built | None:
    """The object that a call of a class makes, in the expression itself or for a variable of a function that is done.

    Its attributes are known as far as its constructor tells, and its methods in any case.
    """
    if isinstance(owner, ast.Name):
        owner = names.given.get(owner.id, owner)
    return made_by_class(owner, names, tree_of)


def _of_class(kind: Any, name: str) -> Any:
    bases = mro_of(kind) if is_a(kind, type) else ()
    return next((class_fields(base)[name] for base in bases if name in class_fields(base)), UNKNOWN)


def _closed_over(function: FunctionType) -> dict[str, Any]:
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    return values


@lru_cache(maxsize=128)
def _stored(scope: ast.AST) -> frozenset[str]:
    """Names that a function gives a value."""
    nodes = syntax.own_expressions(scope)
    return frozenset(one.id for one in nodes if type(one) is ast.Name and type(one.ctx) is ast.Store)


@lru_cache(maxsize=128)
def _given(scope: ast.AST) -> dict[str, ast.expr]:
    """Names that are given a value exactly once in a function, and the expression that they are given."""
    given: dict[str, list[ast.expr | None]] = {}
    for node in syntax.own_expressions(scope):
        if type(node) is ast.Assign and len(node.targets) == 1:
            for name, value in _unpacked(node.targets[0], node.value):
                given.setdefault(name, []).append(value)
        elif type(node) is ast.Name and type(node.ctx) is ast.Store:
            given.setdefault(node.id, []).append(None)
    # Each assignment was met twice: as a statement, and as the name that it stores.
    return {
        name: v
        for name, values in given.items()
        if len(values) == 2 and (v := next(filter(None, values), None))  # noqa: PLR2004
    }


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if type(target) is ast.Name:
        yield target.id, value
    elif type(target) in (ast.Tuple, ast.List):
        for i, one in enumerate(target.elts):  # type: ignore[attr-defined]
            part = ast.Subscript(value=value, slice=ast.Constant(value=i), ctx=ast.Load())
            yield from _unpacked(one, part)


def node_of(value: Any) -> Node | None:
    """The graph node that made a live tensor."""
    try:
        return as_torch.grad_fn(value) if is_tensor(value) else None
    except Exception:  # noqa: BLE001  (a view that was changed in place in a way that torch forbids)
        return None
