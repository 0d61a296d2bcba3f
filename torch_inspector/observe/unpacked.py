"""Which part of a value a name gets: `dist` in `dist, value = agent(obs)`."""

from __future__ import annotations

import ast
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.cutting import is_sorting
from torch_inspector.observe.source import dotted

# Results that are drawn, or that an environment gives: no gradient is expected through them.
_DRAWN = ("sample", "multinomial", "step", "reset")


def position(name: str, targets: list[ast.expr]) -> int | None:
    """The place of a name in the only target, a tuple; None if it gets all of the value or that is not known."""
    target = targets[0] if len(targets) == 1 else None
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    found = [at for at, one in enumerate(target.elts) if dotted(one) == name]
    return found[0] if len(found) == 1 else None


def part(value: ast.expr, at: int | None) -> tuple[ast.expr, int | None]:
    """One element of a tuple that the text shows; of anything else all of it, with the place that is still to find."""
    if at is not None and isinstance(value, (ast.Tuple, ast.List)):
        plain = at < len(value.elts) and not any(isinstance(one, ast.Starred) for one in value.elts)
        return (value.elts[at], None) if plain else (value, None)
    return value, at if isinstance(value, ast.Call) else None


def indexed(expression: ast.expr) -> dict[ast.AST, int]:
    """Calls of which an expression takes one element: `agent(obs)[1]`."""
    found = (node for node in syntax.walk(expression) if isinstance(node, ast.Subscript))
    keys = ((node.value, node.slice.value) for node in found if isinstance(node.slice, ast.Constant))
    return {value: key for value, key in keys if isinstance(value, ast.Call) and type(key) is int and key >= 0}


def is_drawn(node: ast.AST) -> bool:
    """True for `dist.sample()` and `env.step(action)`, of which no gradient comes back."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _DRAWN


def is_second(name: str, node: ast.AST) -> bool:
    """True if a name is given the positions in `_, guess = scores.max(1)`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    pair = target.elts if isinstance(target, ast.Tuple) else []
    last = len(pair) == 2 and dotted(pair[1]) == name  # noqa: PLR2004
    return last and isinstance(node, ast.Assign) and is_sorting(node.value)


@lru_cache(maxsize=64)
def second(call: ast.expr) -> ast.expr:
    """`scores.max(1)[1]`, the same node for the same call."""
    return ast.copy_location(ast.Subscript(call, ast.copy_location(ast.Constant(1), call), ast.Load()), call)
