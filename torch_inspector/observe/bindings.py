"""Where a text gives a name a value, in any of the ways that Python has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.untested import is_untested, parents_of, position


def bindings(scope: ast.AST, name: str) -> list[ast.AST]:
    """The nodes of a scope that give a name a value or take it away."""
    return [node for node in syntax.own_expressions(scope) if _binds(node, name)]


def is_bound_by(statement: ast.stmt, name: str) -> bool:
    """True if a statement, or one inside it, gives a name a value."""
    inside = () if isinstance(statement, syntax.INNER) else bindings(statement, name)
    return bool(inside) or _binds(statement, name)


def is_elsewhere(scope: Scope, name: str) -> bool:
    """True if a function of the latest cells says that a name is one of outside, so that it may give it a value."""
    files = (scope.reading.file, scope.file, *scope.reading.places.latest())
    return any(name in _declared(file.tree) for file in files if file.tree is not None)


def plain_value(scope: Scope, name: str, before: ast.AST) -> ast.expr | None:
    """What the only statement of a scope that gives a name a value gives it; None where that may not have run."""
    found = bindings(scope.node, name)
    statement = next((parent for _, parent in parents_of(scope.node, found[0])), None) if len(found) == 1 else None
    if not isinstance(statement, ast.Assign) or position(found[0]) >= position(before):
        return None
    in_loop = any(isinstance(parent, syntax.LOOPS) for _, parent in parents_of(scope.node, statement))
    # Of several targets each is given the same: `first = second = value`.
    return None if in_loop or not is_untested(scope, statement) else statement.value


def is_plain(statement: ast.AST, name: str) -> bool:
    """True for `name = …` and nothing else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def parameters_of(scope: ast.AST) -> Iterator[str]:
    """Names of what a function is given."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        given = scope.args
        rest = [one for one in (given.vararg, given.kwarg) if one is not None]
        yield from (one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *rest))


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) in (name, "*")
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    return getattr(node, "name", None) == name or getattr(node, "rest", None) == name


def _declared(tree: ast.Module) -> set[str]:
    found: set[str] | None = tree.__dict__.get("_declared")
    if found is None:
        found = {name for one in syntax.walk(tree) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
        tree.__dict__["_declared"] = found
    return found
