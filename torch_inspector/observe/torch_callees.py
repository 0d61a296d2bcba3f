"""The function or layer of torch that a text calls, where it is the same whenever the text runs."""

from __future__ import annotations

import ast
from collections.abc import Collection
from types import ModuleType
from typing import Any

from torch_inspector.observe.bindings import bindings, is_elsewhere, parameters_of, plain_value
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kept_attributes import is_kept
from torch_inspector.observe.kinds import is_a, is_among
from torch_inspector.observe.shapes import Unknown


def torch_callee(scope: Scope, func: ast.expr, wanted: Collection[Any]) -> Any:
    """One of some functions and classes of layers; None for others, and where a name may mean several things.

    Args:
        scope: Where the call stands.
        func: What is called: `F.softmax`, `criterion`, `nn.CrossEntropyLoss()`.
        wanted: Functions of torch, and classes of layers that are called.
    """
    if isinstance(func, ast.Call):  # `nn.CrossEntropyLoss()(p, y)`
        return _among(scope.names.value(func.func), wanted, of_class=True)
    value = scope.names.value(func)
    if type(value) is Unknown:
        return _as_given(scope, func, wanted) if isinstance(func, ast.Name) else None
    found = _among(value, wanted)
    found = _among(type(value), wanted, of_class=True) if found is None else found
    return found if found is not None and _is_settled(scope, func) else None


def _among(value: Any, wanted: Collection[Any], *, of_class: bool = False) -> Any:
    return value if is_a(value, type) == of_class and is_among(value, wanted) else None


def _as_given(scope: Scope, func: ast.Name, wanted: Collection[Any]) -> Any:
    """What a variable of a function is that the text gives it once, there or in the call of the function."""
    if func.id in parameters_of(scope.node):
        given, own = scope.arguments.get(func.id), not bindings(scope.node, func.id)
        return torch_callee(scope.caller, given, wanted) if scope.caller and given is not None and own else None
    value = plain_value(scope, func.id, func)
    fits = isinstance(value, (ast.Call, ast.Attribute)) and not is_elsewhere(scope, func.id)
    return torch_callee(scope, value, wanted) if value is not None and fits else None


def _is_settled(scope: Scope, func: ast.expr) -> bool:
    """True if what is called has one value in the cell."""
    if isinstance(func, ast.Name):
        return _is_settled_name(scope, func)
    if not isinstance(func, ast.Attribute):
        return False
    owner = func.value
    if type(scope.names.value(owner)) is ModuleType:
        return True
    return isinstance(owner, ast.Name) and _is_settled_name(scope, owner) and is_kept(scope, func)


def _is_settled_name(scope: Scope, name: ast.Name) -> bool:
    if is_elsewhere(scope, name.id):
        return False
    own = bindings(scope.node, name.id)
    if name.id in parameters_of(scope.node):
        given = scope.arguments.get(name.id)
        if given is None and next(iter(parameters_of(scope.node)), "") == name.id:
            given = _owner(scope)
        return not own and scope.caller is not None and _is_constant(scope.caller, given)
    if own:
        return plain_value(scope, name.id, name) is not None
    if not scope.function:
        return True
    return _is_settled_outside(scope, name.id)


def _owner(scope: Scope) -> ast.expr | None:
    """What the method of a scope was called of: `t` of `t.value()`, `model` of `model(x)`."""
    func = scope.call.func if scope.call is not None else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == scope.function else func


def _is_constant(scope: Scope, given: ast.expr | None) -> bool:
    """True for an argument that is made in the call, or has one value in the cell."""
    return isinstance(given, ast.Call) or (given is not None and _is_settled(scope, given))


def _is_settled_outside(scope: Scope, name: str) -> bool:
    """True for a variable of the notebook to which the cell gives no value, or one before it calls the function."""
    inner = scope
    while inner.caller is not None and inner.caller.caller is not None:
        inner = inner.caller
    top = inner.caller
    if top is None or inner.call is None or name not in scope.reading.names:
        return False
    same = scope.names.value(ast.Name(name, ast.Load())) is scope.reading.names[name]
    return same and (not bindings(top.node, name) or plain_value(top, name, inner.call) is not None)
