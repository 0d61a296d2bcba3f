"""Modules of which a cross-entropy reads classes along dim 1, as the cells so far have it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn import functional

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import Unknown
from torch_inspector.observe.statements import given_in

# Cells that are read, the latest first.
_CELLS = 12


def is_classifier(scope: Scope, scores: ast.expr) -> bool:
    """True if some scores are the result of a module that a cross-entropy of the notebook was given as it is."""
    given = scope.given(scores.id) if isinstance(scores, ast.Name) else [(scores, scope)]
    module = _module_of(given[0][0], given[0][1].names) if len(given) == 1 else None
    return module is not None and any(one is module for one in _trained(scope))


def _module_of(value: ast.expr, names: Names) -> nn.Module | None:
    """The module with one input whose result an expression is: `net(x)`, `net(x).detach()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        value = value.func.value
    if not isinstance(value, ast.Call) or len(value.args) != 1:
        return None
    callee = names.value(value.func)
    return callee if is_a(callee, nn.Module) else None


def _trained(scope: Scope) -> Iterator[nn.Module]:
    """Modules whose result stands first in a cross-entropy, there or by a name that the text gives it once."""
    top = Names(scope.reading.names)
    files = (scope.reading.file, *scope.reading.places.latest())
    for tree in [file.tree for file in files if file.tree is not None][:_CELLS]:
        for part in (tree, *_functions_in(tree)):
            given = given_in(part)
            for node in syntax.own_expressions(part):
                if isinstance(node, ast.Call) and len(node.args) > 1 and _is_cross_entropy(node, top):
                    first = node.args[0]
                    values = given.get(first.id, []) if isinstance(first, ast.Name) else [first]
                    module = _module_of(values[0], top) if len(values) == 1 else None
                    if module is not None:
                        yield module


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
