"""Classes whose text asks for one row in so many words: `h.view(1, -1)`, `torch.reshape(h, (1, -1))`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_VIEWS = ("view", "reshape")


def asks_for_one_row(run: Run, kind: str) -> bool:
    """True if a class of the user's, or a class or function that it names, views something as one row.

    A field of its own, as in `self.bias.view(1, -1)`, is no batch.
    """
    trees = [syntax.parse(one.cell.source) for one in (run, *reversed(run.earlier))]
    nodes = [one for tree in trees if tree is not None for one in syntax.walk(tree)]
    scopes = [one for one in nodes if isinstance(one, (ast.ClassDef, ast.FunctionDef))]
    own = [one for one in scopes if one.name == kind]
    named = {syntax.name_of(part) for one in own for part in syntax.walk(one)}
    inside = (part for one in scopes if one in own or one.name in named for part in syntax.walk(one))
    return any(_is_of_one_row(part) for part in inside if isinstance(part, ast.Call))


def _is_of_one_row(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _VIEWS:
        return False
    by_torch = syntax.name_of(call.func.value) == "torch"
    sizes = call.args[by_torch:]
    if sizes and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    viewed = call.args[0] if by_torch and call.args else call.func.value
    field = isinstance(viewed, ast.Attribute) and syntax.name_of(viewed.value) == "self"
    return len(sizes) > 1 and isinstance(sizes[0], ast.Constant) and sizes[0].value == 1 and not field
