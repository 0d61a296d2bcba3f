"""What the text gives the names in an expression, each name looked at once, however often it is given anew."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope


def values_behind(
    scope: Scope, source: ast.AST, levels: int, names: Callable[[ast.AST], Iterable[str]] = syntax.names_in
) -> Iterator[tuple[ast.AST, Scope]]:
    """An expression, what its names were given, what the names in that were given, and so on, nearest first.

    Args:
        scope: Where the expression stands.
        source: The expression.
        levels: How far from it names are followed.
        names: Which names of an expression are followed; all, unless told.
    """
    found, seen = [(source, scope)], set[tuple[int, str]]()
    for _ in range(levels):
        yield from found
        fresh = {(id(where), name): where for value, where in found for name in names(value)}
        unseen = [(where, name) for (key, name), where in fresh.items() if (key, name) not in seen]
        seen.update(fresh)
        found = [pair for where, name in unseen for pair in where.given(name)]
    yield from found
