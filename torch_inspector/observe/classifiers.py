"""Modules of which a cross-entropy reads classes along dim 1, as the cells so far have it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import nn
from torch.nn import functional

from torch_inspector.facts import syntax
from torch_inspector.observe.bindings import bindings, is_elsewhere, parameters_of
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import Unknown
from torch_inspector.observe.statements import given_in
from torch_inspector.observe.untested import position

# Cells that are read, the latest first.
_CELLS = 12


class _Spot(NamedTuple):
    """Where a loss stands."""

    scope: ast.AST
    """The function, or the whole cell."""
    cell: ast.AST
    later: tuple[ast.AST, ...]
    """The cells that ran after it."""


def is_classifier(scope: Scope, scores: ast.expr) -> bool:
    """True if some scores are the result of a module that a cross-entropy of the notebook was given as it is."""
    given = scope.given(scores.id) if isinstance(scores, ast.Name) else [(scores, scope)]
    callee = called(given[0][0]) if len(given) == 1 else None
    module = given[0][1].names.value(callee) if callee is not None else None
    return is_a(module, nn.Module) and any(one is module for one in _trained(scope))


def called(value: ast.expr) -> ast.expr | None:
    """What is called with one input, where an expression is the result: `net` of `net(x)` and `net(x).detach()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        value = value.func.value
    return value.func if isinstance(value, ast.Call) and len(value.args) == 1 else None


def _trained(scope: Scope) -> Iterator[nn.Module]:
    """Modules whose result stands first in a cross-entropy, there or by a name that the text gives it once."""
    since: list[ast.AST] = []
    files = (scope.reading.file, *scope.reading.places.latest())
    trees = {id(file.tree): file.tree for file in files if file.tree is not None}
    for tree in list(trees.values())[:_CELLS]:
        for part in (tree, *_functions_in(tree)):
            for node in syntax.own_expressions(part):
                if isinstance(node, ast.Call) and len(node.args) > 1:
                    yield from _read_by(scope, node, _Spot(part, tree, tuple(since)))
        since.append(tree)


def _read_by(scope: Scope, call: ast.Call, spot: _Spot) -> Iterator[nn.Module]:
    """The module whose result a call reads as a cross-entropy, if the names of the text mean the same now."""
    top, first = Names(scope.reading.names), call.args[0]
    values = given_in(spot.scope).get(first.id, []) if isinstance(first, ast.Name) else [first]
    callee = called(values[0]) if len(values) == 1 else None
    if callee is None or not _is_cross_entropy(call, top):
        return
    module = top.value(callee)
    if is_a(module, nn.Module) and all(_is_same(scope, one, spot) for one in (callee, call.func)):
        yield module


def _is_same(scope: Scope, expression: ast.expr, spot: _Spot) -> bool:
    """True for names of the notebook, not of a function, that no text has given another value since it was written."""
    names = {one.id for one in syntax.walk(expression) if isinstance(one, ast.Name)}
    own = set(parameters_of(spot.scope))
    if any(name in own or is_elsewhere(scope, name) for name in names):
        return False
    if spot.scope is not spot.cell and any(bindings(spot.scope, name) for name in names):
        return False
    if any(bindings(cell, name) for cell in spot.later for name in names):
        return False
    # Of one cell, only what comes before the loss is what it was given; a function runs below its text.
    found = [one for name in names for one in bindings(spot.cell, name)]
    return len(found) <= len(names) and all(position(one) < position(expression) for one in found)


def _functions_in(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in syntax.walk(tree) if isinstance(node, ast.FunctionDef))


def _is_cross_entropy(call: ast.Call, names: Names) -> bool:
    made = call.func.func if isinstance(call.func, ast.Call) else None
    if made is not None:
        return names.value(made) is nn.CrossEntropyLoss
    callee: Any = names.value(call.func)
    if type(callee) is Unknown:
        return False
    return callee is functional.cross_entropy or type(callee) is nn.CrossEntropyLoss
