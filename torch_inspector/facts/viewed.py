"""Views that, by the text itself, bring sizes into another order: `q.view(b, n, h, -1)`, then `q.view(b, h, n, -1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.place import Cell
    from torch_inspector.facts.run import Run

_METHODS = frozenset(["view", "reshape"])
_FEWEST = 3


class Viewed(NamedTuple):
    """A variable that one view gives some sizes, and the next the same ones in another order."""

    name: str
    place: Place
    text: str
    order: tuple[int, ...]
    """For each axis, where it was before."""


def viewed_again(run: Run) -> tuple[Viewed, ...]:
    """All of them in the functions of the cells so far, each once."""
    cells = {past.cell.source: past.cell for past in (*run.earlier, run)}
    return tuple(dict.fromkeys(one for cell in cells.values() for one in _viewed_in(cell)))


def _viewed_in(cell: Cell) -> Iterator[Viewed]:
    tree = syntax.parse(cell.source)
    scopes = [one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)] if tree is not None else []
    for scope in scopes:
        sizes: dict[str, list[str]] = {}
        for node in sorted(_stores(scope), key=lambda one: one.lineno):
            name, value = node.targets[0].id, node.value  # type: ignore[attr-defined]
            source, after = _view(value)
            before = sizes.get(source, [])
            if len(after) >= _FEWEST and sorted(before) == sorted(after) != before and len(set(after)) == len(after):
                order = tuple(before.index(one) for one in after)
                if order != tuple(range(len(order))):
                    yield Viewed(source, Place(cell.number, node.lineno, scope.name), ast.unparse(value), order)
            sizes[name] = after


def _stores(scope: ast.FunctionDef) -> Iterator[ast.Assign]:
    for node in syntax.own_expressions(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node


def _view(value: ast.expr) -> tuple[str, list[str]]:
    """The variable that is viewed, if it is one, and the sizes as written."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr not in _METHODS:
        return "", []
    source = value.func.value
    return source.id if isinstance(source, ast.Name) else "", [ast.unparse(one) for one in value.args]
