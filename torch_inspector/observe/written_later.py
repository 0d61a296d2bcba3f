"""Whether the text below a line may write into what a name stands for, so that values tell nothing of before."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted
from torch_inspector.observe.written import alike, gives_away, is_written, names_in

_ROUNDS, _FUNCTIONS = 3, 20


def is_written_later(scope: Scope, source: ast.expr, first: int) -> bool:
    """True if what an expression stands for may be written to, or given more parts, from a line of the scope on.

    Args:
        scope: Where both are; a function's callers are read as well.
        source: A name, an attribute, or a part of one.
        first: The line.
    """
    names = names_in(source)
    here: Scope | None = scope
    for _ in range(_ROUNDS):
        if here is None or not names:
            return False
        if _is_written(here, names, first):
            return True
        first, names = _call_line(here, names), _given(here, names)
        here = here.caller
    return False


def trees_around(scope: Scope) -> list[ast.Module]:
    """The cell of a scope, and the latest ones."""
    files = (scope.file, *scope.reading.places.latest(_FUNCTIONS))
    return [file.tree for file in files if file.tree is not None]


def is_given_away(scope: Scope, nodes: Iterable[ast.AST], names: frozenset[str]) -> bool:
    """True if a call among some nodes gives what a name stands for to a function of the user's that writes to it."""
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    trees = trees_around(scope) if calls else []
    return any(gives_away(one, names, trees) for one in calls)


def _given(scope: Scope, names: frozenset[str]) -> frozenset[str]:
    """What the caller of a function calls the same."""
    found = (names_in(scope.arguments[one]) if one in scope.arguments else {one} for one in names)
    return frozenset(one for part in found for one in part)


def _call_line(scope: Scope, names: frozenset[str]) -> int:
    """The line from which the caller has called a function."""
    known = [scope.arguments[one].lineno for one in names if one in scope.arguments]
    nodes = syntax.walk(scope.caller.node) if scope.caller is not None else ()
    calls = (one for one in nodes if isinstance(one, ast.Call))
    return min(known or [one.lineno for one in calls if dotted(one.func).endswith(scope.function)], default=0)


def _is_written(scope: Scope, names: frozenset[str], first: int) -> bool:
    """True if a line from the first on writes to one of the names, or a function that the scope has inside does."""
    inner = [one for one in syntax.walk(scope.node) if isinstance(one, syntax.INNER) and one is not scope.node]
    own = ((node, first) for node in syntax.own_expressions(scope.node))
    nodes = (*own, *((node, 0) for one in inner for node in syntax.walk(one)))
    late = [node for node, line in nodes if getattr(node, "lineno", 0) >= line]
    same = alike(scope.node, names)
    # `d["gap"] = …` leaves the tensors as they are that `d` has already.
    others = (node for node in late if not _is_entry(node))
    return is_written(filter(_is_entry, late), names) or is_written(others, same) or is_given_away(scope, late, same)


def _is_entry(node: ast.AST) -> bool:
    """True for an entry of a dictionary that is given a value; no tensor has a key that is a text."""
    key = node.slice if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)
