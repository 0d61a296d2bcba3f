"""Copies by a mask or by numbers that a function makes of a variable of the notebook and gives back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.indexing import as_written, indexed_in, kept_as, kept_values, may_copy, numbers_in
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.source import dotted

HANDED = "handed-copies"

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
# A list that goes into a dictionary that is given back.
_ROUNDS = 3


def handed_copies(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`out.append(x[y != k])` of a function that gives `out` back, where `x` is a variable of the notebook."""
    whole = node is statement or (isinstance(statement, ast.Expr) and statement.value is node)
    if not scope.function or not whole or not _is_handed(scope.node, statement):
        return
    indexed = list(indexed_in(statement))
    numbers = numbers_in(scope.node, [one.slice for one in indexed])
    found = [(one, path) for one in indexed if may_copy(one.slice, numbers) and (path := _path_of(scope, one.value))]
    roots = _kept_outside(scope) if found else ()
    for one, path in found if roots else ():
        yield scope.fact(HANDED, one, statement, names=(path, as_written(one.slice), *roots))


def _is_handed(function: ast.AST, statement: ast.stmt) -> bool:
    """True for a statement that gives back what it keeps, or puts it into what is given back."""
    return isinstance(statement, ast.Return) or not _handed(function).isdisjoint(_roots(statement))


@lru_cache(maxsize=64)
def _handed(function: ast.AST) -> frozenset[str]:
    """Variables of a function that are in what it gives back, as they are."""
    statements = [one for one in syntax.own_expressions(function) if isinstance(one, _STATEMENTS)]
    found = {name for one in statements if isinstance(one, ast.Return) for name in _kept_names(one)}
    for _ in range(_ROUNDS if found else 0):
        found |= {name for one in statements if not found.isdisjoint(_roots(one)) for name in _kept_names(one)}
    return frozenset(found)


def _kept_names(statement: ast.stmt) -> list[str]:
    return [one.id for one in kept_values(statement) if isinstance(one, ast.Name)]


def _roots(statement: ast.stmt) -> list[str]:
    """The variables that a statement puts its value into: all of `a, b = …`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [one.id for target in targets for one in getattr(target, "elts", ()) if isinstance(one, ast.Name)]
    first = kept_as(statement)
    return names or ([first] if first else [])


def _kept_outside(scope: Scope) -> tuple[str, ...]:
    """Variables of the notebook that keep what a function gave back; none if anything is made of it before."""
    caller = scope.caller
    if caller is None:
        return ()
    statements = [one for one in syntax.own_expressions(caller.node) if isinstance(one, _STATEMENTS)]
    around = next((one for one in statements if any(part is scope.call for part in kept_values(one))), None)
    if around is None:
        return ()
    if caller.function:
        return _kept_outside(caller) if _is_handed(caller.node, around) else ()
    return tuple(_roots(around))


def _path_of(scope: Scope, owner: ast.expr) -> str:
    """What the user can type for a tensor that a function reads; empty for all else."""
    value: Any = scope.names.value(owner)
    if not is_one_of(value, (torch.Tensor,)):
        return ""
    named = next((name for name, one in scope.reading.names.items() if one is value and name[:1] != "_"), "")
    called = scope.call.func if scope.call is not None else None
    if named or not isinstance(called, ast.Attribute) or scope.caller is None or scope.caller.function:
        return named
    text = dotted(owner)  # an attribute of the object whose method it is
    return f"{dotted(called.value)}{text[4:]}" if text.startswith("self.") and dotted(called.value) else ""
