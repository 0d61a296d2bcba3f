"""The simple statement of a line, that can be repeated elsewhere as it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete, ast.Raise)
# Longer ones are no example for anybody.
_LONGEST = 160


def statement_at(source: str, place: Place) -> ast.stmt | None:
    """The one simple statement that holds a line; None for a head such as that of a loop, and for what runs later."""
    tree, line = syntax.parse(source), place.line
    nodes = (node for node in syntax.walk(tree) if isinstance(node, _SIMPLE)) if tree is not None else ()
    found = [one for one in nodes if line is not None and one.lineno <= line <= (one.end_lineno or one.lineno)]
    if len(found) != 1 or _runs_later(found[0], place) or len(ast.unparse(found[0])) > _LONGEST:
        return None
    return found[0]


def _runs_later(statement: ast.stmt, place: Place) -> bool:
    value = getattr(statement, "value", None)
    return place.function == "<lambda>" or isinstance(value, (ast.GeneratorExp, ast.Lambda))
