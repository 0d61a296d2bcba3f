"""Whether the code makes a loss of what a list or total holds, and differentiates that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.growth import Growth
from torch_inspector.observe.source import KEEPS, dotted

_SCOPES = (*syntax.FUNCTIONS, ast.Module)
# A list of a loss, used for another one, is three or four statements away.
_ROUNDS = 4


def feeds_loss(trees: list[ast.Module], found: Growth) -> bool:
    """True if some function, or a cell itself, calls `backward()` on what it has computed from the list or total.

    Args:
        trees: The code of the cell and of what it can call.
        found: The line that collects; a list of what `backward()` itself was called on is a list of results.
    """
    node = found.node
    name = _collection(found)
    kept = {dotted(one) for one in node.args} if isinstance(node, ast.Call) else set()
    if not name or _is_log_probability(node):
        return bool(name)
    made = {name, *(one for tree in trees for one in _returned(tree, name))}
    return any(_reaches_backward(scope, made, kept) for tree in trees for scope in _scopes(tree))


def _collection(found: Growth) -> str:
    """The list of a call that collects, the total of a statement that adds."""
    node = found.node
    if isinstance(node, ast.Call):
        return _name_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    adds = found.kind == "sum" and isinstance(node, (ast.Assign, ast.AugAssign))
    targets = syntax.targets_of(node) if adds else ()
    return next((_name_of(one) for one in targets), "")


def _is_log_probability(node: ast.AST) -> bool:
    """True for `log_probs.append(policy.log_prob(action))`: the loss comes with the rewards, if in a later cell."""
    given = node.args if isinstance(node, ast.Call) else []
    return any(isinstance(n, ast.Attribute) and n.attr == "log_prob" for one in given for n in syntax.walk(one))


def _returned(tree: ast.AST, name: str) -> Iterator[str]:
    """Functions that give back what they compute from the list, also as methods."""
    for node in syntax.walk(tree):
        if isinstance(node, syntax.FUNCTIONS):
            nodes = tuple(syntax.own_expressions(node))
            made = _all_made(nodes, {name})
            if any(isinstance(n, ast.Return) and n.value is not None and _mentions(n.value, made) for n in nodes):
                yield from (node.name, f".{node.name}")


@lru_cache(maxsize=32)
def _scopes(tree: ast.AST) -> tuple[tuple[ast.AST, ...], ...]:
    """The nodes of each function and of the cell that speak of `backward`."""
    scopes = (tuple(syntax.own_expressions(node)) for node in syntax.walk(tree) if isinstance(node, _SCOPES))
    return tuple(nodes for nodes in scopes if any(_differentiated(node) for node in nodes))


def _differentiated(node: ast.AST) -> ast.expr | None:
    """`loss` of `loss.backward()` and of `scaler.scale(loss).backward()`."""
    called = node.func if isinstance(node, ast.Call) else None
    return called.value if isinstance(called, ast.Attribute) and called.attr == "backward" else None


def _reaches_backward(nodes: tuple[ast.AST, ...], names: set[str], kept: set[str]) -> bool:
    made = _all_made(nodes, names)
    roots = [root for node in nodes if (root := _differentiated(node)) is not None]
    itself = any(dotted(root) in kept for root in roots if dotted(root))
    return not itself and any(_mentions(root, made) for root in roots)


def _all_made(nodes: tuple[ast.AST, ...], names: set[str]) -> set[str]:
    made = set(names)
    for _ in range(_ROUNDS):
        made |= {target for node in nodes for target in _made_of(node, made)}
    return made


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
    names = (_name_of(n) for n in syntax.walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)))
    return any(name and (name in made or _same_attribute(name, made)) for name in names)


def _name_of(node: ast.AST) -> str:
    """The dotted name; an entry of a dictionary is like an attribute: `episode['log_probs']`."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Subscript) and isinstance(key, ast.Constant) and type(key.value) is str:
        owner = _name_of(node.value)
        return f"{owner}.{key.value}" if owner else ""
    return dotted(node)


def _same_attribute(name: str, made: set[str]) -> bool:
    """True for `self.log_probs` beside `agent.log_probs`."""
    last = name.rpartition(".")[2]
    return "." in name and any("." in one and one.rpartition(".")[2] == last for one in made)
