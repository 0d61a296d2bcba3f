"""Numbers that are zero in float16, as written or under a name: `1e-8`, `EPS`, `self.eps`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

Known = Mapping[str, float | None]
"""Numbers by name; None for names that may stand for several."""
# Half of the smallest number of float16: what is not above it becomes zero.
_ZERO = 2.0**-25


def number_in(node: ast.AST, known: Known) -> float:
    """Such a number; 0 for everything else."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = known.get(ast.unparse(node))
    return value if type(value) is float and 0 < value <= _ZERO else 0.0


def known_numbers(run: Run) -> dict[str, float | None]:
    """What the texts so far give a name, or an attribute, once and for all."""
    found: dict[str, float | None] = {}
    for source in dict.fromkeys(past.cell.source for past in (*run.earlier, run)):
        tree = syntax.parse(source)
        plain = {id(target): node.value for node in _assigns(tree) for target in node.targets}
        for target in syntax.walk(tree) if tree is not None else ():
            if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(target.ctx, ast.Store):
                name, given = ast.unparse(target), plain.get(id(target))
                value = number_in(given, {}) if given is not None else 0.0
                found[name] = value if value and found.get(name, value) == value else None
    return found


def _assigns(tree: ast.Module | None) -> Iterator[ast.Assign]:
    yield from (one for one in syntax.walk(tree) if isinstance(one, ast.Assign)) if tree is not None else ()
