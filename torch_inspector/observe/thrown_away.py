"""Moves such as `x.to(device)` in a function that nobody keeps, of a tensor that the cell has given the function.

Of a tensor that an object has, `self.x`, other types of numbers as well: it stays what it was for all that follows.
Of types of numbers `discards.py` tells, where the function gives the tensor back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.discards import MAKES, asks_for_device, said
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.iterated import items_of
from torch_inspector.observe.measuring import is_measured, is_timed
from torch_inspector.observe.ran import surely_ran
from torch_inspector.observe.shapes import UNKNOWN, is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in


def thrown_away(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """What the tensor is now, if not what the call would have made of it, and what a loop has it from."""
    func = node.func if isinstance(node, ast.Call) else None
    plain = isinstance(statement, ast.Expr) and statement.value is node and bool(scope.function)
    if not plain or not isinstance(func, ast.Attribute) or func.attr not in MAKES:
        return
    if isinstance(func.value, ast.Attribute):
        yield from _of_object(scope, node, statement, func.value)
    if not isinstance(func.value, ast.Name):
        return
    loop = _loop_of(scope, func.value.id, statement)
    tensors = _tensors(scope, func.value, loop)
    wanted = _wanted(scope, node) if tensors else ""
    wrong = [one for one in tensors if wanted not in _devices(one)]
    if not wrong or not asks_for_device(wanted) or not _is_needed(scope, func.value.id, statement, loop):
        return
    if not _is_for_effect(scope, statement, func.value.id) and surely_ran(scope, node, statement):
        over = type(scope.names.value(loop.iter)).__name__ if loop is not None else ""
        names = (func.value.id, *_state_of(wrong[0]), over)
        yield scope.fact("thrown-away", node, statement, names=names, detail=wanted)


def _of_object(scope: Scope, node: ast.AST, statement: ast.stmt, owner: ast.Attribute) -> Iterator[ExpressionFact]:
    """Of `self.x` in a method that gives it no other value: what the object has of it by now."""
    path = dotted(owner)
    own = syntax.own_expressions(scope.node)
    stored = any(isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load) for one in own)
    tensor = scope.names.value(owner) if path.startswith("self.") and not stored else UNKNOWN
    wanted = _wanted(scope, node) if is_tensor(tensor) else ""
    # To fetch a tensor is a way to wait for a device.
    if not wanted or wanted in ("cpu", *_devices(tensor), _state_of(tensor)[1]):
        return
    if not _is_for_effect(scope, statement, path) and surely_ran(scope, node, statement):
        yield scope.fact("thrown-away", node, statement, names=(path, *_state_of(tensor), ""), detail=wanted)


def _state_of(tensor: Any) -> tuple[str, str]:
    """Its device and its type of numbers."""
    return str(as_torch.device(tensor)), str(as_torch.dtype(tensor)).removeprefix("torch.")


def _loop_of(scope: Scope, name: str, statement: ast.stmt) -> ast.For | None:
    """The loop around a statement whose one variable has this name."""
    loops = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.For))
    around = [one for one in loops if any(inner is statement for inner in syntax.walk(one))]
    return next((one for one in around if isinstance(one.target, ast.Name) and one.target.id == name), None)


def _tensors(scope: Scope, owner: ast.Name, loop: ast.For | None) -> list[Any]:
    """The tensor that a parameter is, or those that a loop goes through, if they live and are nothing else."""
    if len(stores_in(scope.node).get(owner.id, ())) != (loop is not None):
        return []
    if loop is None:
        found = [scope.names.value(owner)]
    else:
        found = items_of(scope.names, loop.iter) or [] if isinstance(loop.iter, ast.Name) else []
    return found if all(map(is_tensor, found)) else []


def _devices(tensor: Any) -> tuple[str, ...]:
    """What the device of a tensor is called: `cuda:0` and `cuda`, `cuda:1` alone."""
    device = str(as_torch.device(tensor))
    first, _, number = device.partition(":")
    return (device, first) if number in ("", "0") else (device,)


def _wanted(scope: Scope, call: ast.AST) -> str:
    """What a call asks for; empty where that is not known."""
    given = [*call.args, *(one.value for one in call.keywords)] if isinstance(call, ast.Call) else []
    made = MAKES[call.func.attr] if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    value = scope.names.value(given[0]) if given and made is None else UNKNOWN
    return made or said(value)


def _is_needed(scope: Scope, name: str, statement: ast.stmt, loop: ast.For | None) -> bool:
    """True if the function goes on with the variable, or with what the loop goes through: `return batch`."""
    names = {name} if loop is None else {dotted(loop.iter)}
    last = statement.lineno if loop is None else loop.end_lineno or loop.lineno
    nodes = syntax.own_expressions(scope.node)
    later = (one.id for one in nodes if isinstance(one, ast.Name) and one.lineno > last)
    inside = loop is not None and any(
        isinstance(one, ast.Name) and one.id == name and one.lineno > statement.lineno for one in syntax.walk(loop)
    )
    return inside or any(one in names for one in later)


def _is_for_effect(scope: Scope, statement: ast.stmt, name: str) -> bool:
    """True where a clock, a profiler or a counter stands around it: `y.cpu()` waits for a device."""
    parents = syntax.parents(scope.node)
    here = parents.get(id(statement))
    while here is not None and here is not scope.node:
        if is_measured(here):
            return True
        here = parents.get(id(here))
    tree = scope.file.tree
    return tree is not None and is_timed(tree, statement.lineno, name)
