"""Functions of the user's that run when the text below a line does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.written_later import trees_around

# Functions that call others.
_ROUNDS = 3


def late_bodies(scope: Scope, late: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The functions that some nodes call, or hand on to be called, and those that these call in turn.

    Args:
        scope: Where the nodes are; its own function is left out.
        late: The nodes.
    """
    called = _called_in(late) - {scope.function.rpartition(".")[2]}
    known = [one for tree in trees_around(scope) for one in syntax.functions_of(tree)] if called else []
    seen = {"__init__"}
    for _ in range(_ROUNDS):
        bodies = [one for one in known if one.name in called - seen]
        yield from bodies
        seen |= called
        called = {name for one in bodies for name in _called_in(syntax.walk(one))}


def _called_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of what is called, and of all that may be handed on to be called."""
    return {syntax.name_of(one) for one in nodes} - {""}
