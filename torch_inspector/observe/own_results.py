"""Results from which their own function works out its gradient, changed through `.data`: `h = torch.sigmoid(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax

# They keep what they gave, and not what they were given.
_KEEPING = frozenset(["sigmoid", "tanh", "exp", "softmax", "log_softmax", "sqrt", "rsqrt", "reciprocal"])


def changed_results(
    edits: list[tuple[str, ast.stmt]], statements: list[ast.stmt], read: list[tuple[int, set[str]]]
) -> Iterator[tuple[str, ast.stmt, ast.Assign, str]]:
    """The name, the change in place, the line that gave the name its value, and the function of that line.

    Args:
        edits: Names and statements that change them.
        statements: All of the scope.
        read: Names that are read on the way to the loss, by line.
    """
    for path, edit in edits:
        # A new tensor in the place of the old one leaves what was kept as it is.
        plain = isinstance(edit, ast.Assign) and isinstance(edit.targets[0], ast.Attribute)
        branches = (one for one in statements if isinstance(one, ast.If))
        if plain or any(syntax.spans(one, edit.lineno) for one in branches):
            continue
        made = [one for one in statements if isinstance(one, ast.Assign) and _gives(one, path)]
        before = [one for one in made if one.lineno < edit.lineno]
        function = syntax.last_part(before[-1].value.func) if before else ""  # type: ignore[attr-defined]
        if function in _KEEPING and any(line > edit.lineno and path in names for line, names in read):
            yield path, edit, before[-1], function


def _gives(statement: ast.Assign, name: str) -> bool:
    return isinstance(statement.value, ast.Call) and any(
        isinstance(one, ast.Name) and one.id == name for one in statement.targets
    )
