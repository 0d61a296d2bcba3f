"""The model of which an optimizer was to get what wants a gradient, where nothing of it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from torch_inspector.facts import FrozenFact, called, syntax
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.failing import Scope, failing_expressions
from torch_inspector.observe.locals import locals_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile

_ASKS = ("parameters", "named_parameters")


def frozen_fact(file: CodeFile, entry: TracebackType) -> FrozenFact | None:
    """The one module whose parameters the failing line was to sort out; None if they are not sorted, or not frozen."""
    if file.tree is None:
        return None
    given = failing_expressions(file.tree, entry)
    around = syntax.scope_at(file.tree, entry.tb_lineno)
    given = [*given, *_values(around, {one.id for node in given for one in _names(node)})]
    tests = [test for node in given for test in _tests(node)]
    if not tests or not all(map(_is_for_wanting, tests)):
        return None
    owners = {ast.unparse(one): one for node in given for one in _owners(node)}
    with locals_of(entry.tb_frame) as values:
        scope = Scope(values, entry.tb_frame)
        found = [(text, scope.value(node)[1]) for text, node in owners.items()]
    return _fact(*found[0]) if len(found) == 1 else None


def _fact(path: str, module: object) -> FrozenFact | None:
    if not kinds.is_a(module, torch.nn.Module):
        return None
    wants = [as_torch.requires_grad(p) for _, p in layers.walk_parameters(module)]
    return FrozenFact(path, len(wants)) if wants and not any(wants) else None


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in syntax.walk(node) if isinstance(one, ast.Name))


def _values(scope: ast.AST, names: set[str]) -> list[ast.expr]:
    """What some variables are given in the same function, or in the cell."""
    nodes = [one for one in syntax.own_statements(scope) if isinstance(one, ast.Assign)]
    return [one.value for one in nodes if isinstance(one.targets[0], ast.Name) and one.targets[0].id in names]


def _tests(node: ast.AST) -> Iterator[list[ast.expr]]:
    """The conditions of each comprehension and `filter` that sorts something out."""
    for one in syntax.walk(node):
        if isinstance(one, ast.comprehension) and one.ifs:
            yield one.ifs
        elif _filters(one):
            yield [one.args[0].body] if isinstance(one.args[0], ast.Lambda) else []  # type: ignore[attr-defined]


def _filters(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) == "filter" and bool(node.args)


def _is_for_wanting(tests: list[ast.expr]) -> bool:
    """True if what does not want a gradient is left out, whatever else the conditions say."""
    return any(map(_wants, tests))


def _wants(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return (any if isinstance(test.op, ast.And) else all)(map(_wants, test.values))
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.Eq)):
        second = test.comparators[0]
        return _wants(test.left) and isinstance(second, ast.Constant) and second.value is True
    return isinstance(test, ast.Attribute) and test.attr == "requires_grad"


def _owners(node: ast.AST) -> Iterator[ast.expr]:
    """`model` of `model.parameters()`."""
    for one in syntax.walk(node):
        function = one.func if isinstance(one, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _ASKS:
            yield function.value
