"""Where a text turns a number round: `-loss`, `1 + loss`, `loss.mul(-1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from torch_inspector.facts import syntax

_TURNS = frozenset(["abs", "abs_", "neg", "neg_", "negative", "sub", "sub_", "rsub", "add", "add_"])
# Names that a number goes on to: a variable of a loop over a list, what a function gives back.
_HANDED_ON = 4
_Way = tuple[set[str], set[str]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def turns(node: ast.AST) -> bool:
    """True for signs and sums, which may turn a mean probability into an error; for products with a sign as well."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Sub)) or _is_signed(node.left) or _is_signed(node.right)
    if isinstance(node, ast.Compare):
        return any(_is_signed(one) for one in (node.left, *node.comparators))
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.op, ast.Add) or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Attribute):
        return node.attr in _TURNS
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") in _TURNS
    return called or (isinstance(node, ast.Call) and any(_is_signed(one) for one in node.args))


def is_turned(trees: Iterable[ast.Module], names: set[str]) -> bool:
    """True if some text turns a variable, attribute or function of these names, or what is made of it.

    Args:
        trees: The texts.
        names: Last parts of what is written: `total` for `self.total`.
    """
    read = [_read(tree) for tree in trees]
    ways = [way for some, _ in read for way in some]
    for _ in range(_HANDED_ON):
        names = names.union(*(to for come_from, to in ways if not names.isdisjoint(come_from)))
    return any(not names.isdisjoint(turned) for _, turned in read)


@lru_cache(maxsize=64)
def _read(tree: ast.Module) -> tuple[tuple[_Way, ...], frozenset[str]]:
    """The ways that numbers go in a text, and the names of all that it turns."""
    nodes = list(syntax.walk(tree))
    turned = {name for node in nodes if turns(node) for name in _turned(node)}
    return tuple(way for node in nodes for way in _ways(node)), frozenset(turned)


def _ways(node: ast.AST) -> Iterator[_Way]:
    """Names that a part of a text reads, and those that it gives what it reads."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield set(_names_in(node.iter)), set(_names_in(node.target))
    elif isinstance(node, ast.Assign):
        yield set(_names_in(node.value)), {name for one in node.targets for name in _names_in(one)}
    elif isinstance(node, _FUNCTIONS):
        given = (one.value for one in syntax.own_statements(node) if isinstance(one, ast.Return))
        yield {name for one in given if one is not None for name in _names_in(one)}, {node.name}


def _turned(node: ast.AST) -> Iterator[str]:
    """The names in what is turned: of what is added to a variable, only the variable."""
    adds = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    return _names_in(node.target if isinstance(node, ast.AugAssign) and adds else node)


def _names_in(node: ast.AST) -> Iterator[str]:
    for one in syntax.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield one.id if isinstance(one, ast.Name) else one.attr


def _is_signed(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
