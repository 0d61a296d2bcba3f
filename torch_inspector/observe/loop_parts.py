"""The heads of a loop, what it does in each turn, and its variables, whether it is a statement or a comprehension."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torch_inspector.facts import syntax
from torch_inspector.observe.covered import Loop


def heads_of(loop: Loop) -> Sequence[ast.For | ast.comprehension]:
    """What has a variable and something to go through."""
    return [loop] if isinstance(loop, ast.For) else loop.generators


def inside(loop: Loop) -> Sequence[ast.AST]:
    """The lines of a loop, or the one expression."""
    return [*loop.body, *loop.orelse] if isinstance(loop, ast.For) else [loop.elt]


def own_names(loop: Loop) -> set[str]:
    """Variables of a comprehension: outside of it they are others of the same name, or none."""
    heads = [] if isinstance(loop, ast.For) else loop.generators
    return {name for one in heads for name in syntax.names_in(one.target)}


def is_given(name: str, loop: Loop) -> bool:
    """True if the lines of a loop give a name another value."""
    parts = (part for one in inside(loop) for part in syntax.walk(one)) if isinstance(loop, ast.For) else ()
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in parts)
