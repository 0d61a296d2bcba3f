"""Whether the code makes a loss of what a list holds, and differentiates that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.growth import Growth
from torch_inspector.observe.source import KEEPS, dotted

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
# A list of a loss, used for another one, is three or four statements away.
_ROUNDS = 4


def feeds_loss(tree: ast.AST, found: Growth) -> bool:
    """True if some function, or the cell itself, calls `backward()` on what it has computed from the list.

    Args:
        tree: The code of a cell.
        found: The line that collects; a list of what `backward()` itself was called on is a list of results.
    """
    node = found.node
    name = dotted(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    kept = {dotted(one) for one in node.args} if isinstance(node, ast.Call) else set()
    return bool(name) and any(_reaches_backward(scope, name, kept) for scope in _scopes(tree))


@lru_cache(maxsize=32)
def _scopes(tree: ast.AST) -> tuple[tuple[ast.AST, ...], ...]:
    """The nodes of each function and of the cell that speak of `backward`."""
    scopes = (tuple(syntax.own_expressions(node)) for node in syntax.walk(tree) if isinstance(node, _SCOPES))
    return tuple(nodes for nodes in scopes if any(_differentiated(node) for node in nodes))


def _differentiated(node: ast.AST) -> ast.expr | None:
    """`loss` of `loss.backward()` and of `scaler.scale(loss).backward()`."""
    called = node.func if isinstance(node, ast.Call) else None
    return called.value if isinstance(called, ast.Attribute) and called.attr == "backward" else None


def _reaches_backward(nodes: tuple[ast.AST, ...], name: str, kept: set[str]) -> bool:
    made = {name}
    for _ in range(_ROUNDS):
        made |= {target for node in nodes for target in _made_of(node, made)}
    roots = [root for node in nodes if (root := _differentiated(node)) is not None]
    itself = any(dotted(root) in kept for root in roots if dotted(root))
    return not itself and any(_mentions(root, made) for root in roots)


def _made_of(node: ast.AST, made: set[str]) -> Iterator[str]:
    """Names that a statement gives a value which comes from one of these."""
    if isinstance(node, ast.Assign) and _mentions(node.value, made):
        yield from (dotted(target) for target in node.targets if dotted(target))
    elif isinstance(node, ast.AugAssign) and _mentions(node.value, made):
        yield from filter(None, [dotted(node.target)])
    elif isinstance(node, ast.For) and _mentions(node.iter, made):
        yield from (part.id for part in syntax.walk(node.target) if isinstance(part, ast.Name))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
        kept = dotted(node.func.value)
        yield from [kept] if kept and any(_mentions(one, made) for one in node.args) else ()


def _mentions(value: ast.AST, made: set[str]) -> bool:
    names = (dotted(n) for n in syntax.walk(value) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(name and (name in made or _same_attribute(name, made)) for name in names)


def _same_attribute(name: str, made: set[str]) -> bool:
    """True for `self.log_probs` beside `agent.log_probs`."""
    last = name.rpartition(".")[2]
    return "." in name and any("." in one and one.rpartition(".")[2] == last for one in made)
