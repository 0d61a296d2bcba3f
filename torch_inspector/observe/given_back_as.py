"""What a variable of a function is after the cell, where the function gives it back and the cell keeps it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in

# With one of these a cell may give a name another value, or a tensor other numbers, and no text tells which.
_HIDDEN = frozenset(["globals", "locals", "vars", "exec", "eval", "setattr", "get_ipython", "set_"])


class _Body(NamedTuple):
    """What is asked of a function for each of its statements."""

    lines: frozenset[int]
    """Of statements of its own that are expressions."""
    first: int
    """The line of its first `return`; 0 if it has none."""
    returns: tuple[ast.expr | None, ...]


def given_back_as(tree: ast.Module, name: str, line: int, names: Mapping[str, Any]) -> Any:
    """What `x, y = prepare(…)` keeps of a function that ends with `return x, y`; None if that is not sure.

    Args:
        tree: The cell; the function and the call stand in it.
        name: A variable of the function.
        line: A statement of the function's own that always runs; what the variable is must not change after it.
        names: What the user's names stand for after the cell.
    """
    scope = syntax.function_around(tree, line)
    if scope is None or not _is_known(tree, scope.name, scope):
        return None
    body = _body(scope)
    places = {_place_in(one, name) for one in body.returns}
    given = max(stores_in(scope).get(name, [0]), default=0)
    if line not in body.lines or len(places) != 1 or given > line or body.first < line:
        return None
    place = places.pop()
    kept = [target for one in _kept(tree).get(scope.name, ()) if (target := _target(one, place))]
    known = [one for one in kept if len(stores_in(tree).get(one, ())) == 1 and one not in _elsewhere(tree)]
    return names.get(known[0]) if len(known) == 1 else None


@lru_cache(maxsize=64)
def _body(scope: ast.AST) -> _Body:
    returns = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Return)]
    lines = frozenset(one.lineno for one in getattr(scope, "body", ()) if isinstance(one, ast.Expr))
    first = min((one.lineno for one in returns), default=0)
    return _Body(lines, first, tuple(one.value for one in returns))


@lru_cache(maxsize=64)
def _is_known(tree: ast.Module, name: str, scope: ast.AST) -> bool:
    """True if a name stands for this function wherever the cell calls it, and nothing wraps what it returns."""
    defined = [one for one in syntax.own_statements(tree) if getattr(one, "name", "") == name]
    wrapped = (one.func if isinstance(one, ast.Call) else one for one in getattr(scope, "decorator_list", ()))
    plain = all(dotted(one) in {"torch.no_grad", "torch.inference_mode", "torch.enable_grad"} for one in wrapped)
    stored = name in stores_in(tree) or name in _elsewhere(tree)
    return defined == [scope] and plain and not stored and not _may_change(tree)


@lru_cache(maxsize=32)
def _may_change(tree: ast.Module) -> bool:
    """True for a cell that assigns `x.data`, or that gives values by names that are text."""
    for one in syntax.walk(tree):
        named = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
        stored = isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and named == "data"
        if named in _HIDDEN or stored:
            return True
    return False


@lru_cache(maxsize=32)
def _elsewhere(tree: ast.Module) -> frozenset[str]:
    """Names of the cell that its functions may give values."""
    return frozenset(name for one in syntax.walk(tree) if isinstance(one, ast.Global) for name in one.names)


@lru_cache(maxsize=32)
def _kept(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What the statements of a cell that surely ran keep of the functions that they call by name alone."""
    found: dict[str, list[ast.expr]] = {}
    for one in tree.body:
        call = one.value if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if isinstance(one, ast.Assign) and isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            found.setdefault(call.func.id, []).append(one.targets[0])
    return found


def _place_in(value: ast.expr | None, name: str) -> int | None:
    """Which part of a result a variable is, -1 for all of it; None if it is not in it."""
    parts = value.elts if isinstance(value, ast.Tuple) else []
    found = next((at for at, one in enumerate(parts) if isinstance(one, ast.Name) and one.id == name), None)
    return -1 if isinstance(value, ast.Name) and value.id == name else found


def _target(given: ast.expr, place: int | None) -> str:
    """The variable that is given that part of what the function returns; empty if there is none."""
    target: ast.expr | None = given if place is not None else None
    if place is not None and place >= 0:
        parts = given.elts if isinstance(given, ast.Tuple) else []
        target = parts[place] if place < len(parts) else None
    return target.id if isinstance(target, ast.Name) else ""
