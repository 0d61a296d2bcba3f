"""Calls and statements around a backward call, as the text has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# A longer expression is no help in a correction.
_LONGEST = 60
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


def differentiated_at(run: Run, place: Place) -> str:
    """What stands before the only `.backward()` of a line; empty if that is long."""
    nodes = (node for one in _statements(run, place.cell) if one.lineno == place.line for node in syntax.walk(one))
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    found = [ast.unparse(one.value) for one in calls if one.attr == "backward"]
    return found[0] if len(found) == 1 and len(found[0]) <= _LONGEST else ""


def handed_detached(run: Run, place: Place, name: str) -> tuple[str, int, int | None] | None:
    """The statement that hands a variable to what was differentiated at a place, with `.detach()`, and line and cell.

    That is the only call of the function around the place, or else the last use above it in the same function.
    """
    for past in (run, *reversed(run.earlier)):
        calls = [one for one in _statements(run, past.cell.number) if _gives(one, name, place.function)]
        if calls and place.function:
            return (
                (_detached(calls[0], name, place.function), calls[0].lineno, past.cell.number)
                if not calls[1:]
                else None
            )
    above = [one for one in _statements(run, place.cell) if one.lineno < (place.line or 0) and _gives(one, name, "")]
    last = max(above, key=lambda one: one.lineno, default=None)
    return (_detached(last, name, ""), last.lineno, place.cell) if last is not None else None


def loop_over_things(run: Run, place: Place) -> bool:
    """True if the innermost loop around a place goes over things that have names or an order, not over a count."""
    tree = syntax.parse(run.source_of(place.cell))
    nodes = syntax.walk(tree) if tree is not None else ()
    loops = [one for one in nodes if isinstance(one, (ast.For, ast.While)) and _has(one, place.line or 0)]
    inner = max(loops, key=lambda one: one.lineno, default=None)
    return isinstance(inner, ast.For) and not ast.unparse(inner.iter).startswith(("range(", "tqdm(", "trange("))


def thrown_away(run: Run, method: str) -> tuple[str, Place] | None:
    """The only statement that calls a method without arguments and keeps nothing of it: `state.detach()`."""
    found = []
    for past in {one.cell.source: one for one in (*run.earlier, run)}.values():
        statements = (one for one in _statements(run, past.cell.number) if isinstance(one, ast.Expr))
        calls = [one.value for one in statements if isinstance(one.value, ast.Call) and not one.value.args]
        named = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == method]
        found += [(ast.unparse(one), Place(past.cell.number, one.lineno)) for one in named]
    return found[0] if len(found) == 1 else None


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno < line <= (node.end_lineno or node.lineno)


def _statements(run: Run, cell: int | None) -> Iterator[ast.stmt]:
    tree = syntax.parse(run.source_of(cell))
    return (one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, _STATEMENTS))


def _gives(statement: ast.stmt, name: str, function: str) -> bool:
    return any(_is_given(node, name, function) for node in syntax.walk(statement))


def _is_given(node: ast.AST, name: str, function: str) -> bool:
    """True for a call that is given the variable, of that function if there is one."""
    if not isinstance(node, ast.Call) or (function and ast.unparse(node.func).rpartition(".")[2] != function):
        return False
    return any(ast.unparse(one) == name for one in (*node.args, *(word.value for word in node.keywords)))


def _detached(statement: ast.stmt, name: str, function: str) -> str:
    made = ast.parse(ast.unparse(statement))
    for node in ast.walk(made):
        if isinstance(node, ast.Call) and _is_given(node, name, function):
            node.args = [_cut(one, name) for one in node.args]
            for word in node.keywords:
                word.value = _cut(word.value, name)
    return ast.unparse(made)


def _cut(node: ast.expr, name: str) -> ast.expr:
    if ast.unparse(node) != name:
        return node
    return ast.Call(ast.Attribute(node, "detach", ast.Load()), [], [])
