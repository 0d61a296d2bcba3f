"""Where a text turns a number round: `-loss`, `1 + loss`, `loss.mul(-1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax

_TURNS = frozenset(["abs", "abs_", "neg", "neg_", "negative", "sub", "sub_", "rsub", "add", "add_"])
# Names that a number goes on to: a variable of a loop over a list, what a function gives back.
_HANDED_ON = 4
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
    nodes = [node for tree in trees for node in syntax.walk(tree)]
    ways = [way for node in nodes for way in _ways(node)]
    for _ in range(_HANDED_ON):
        names = names.union(*(to for come_from, to in ways if not names.isdisjoint(come_from)))
    return any(turns(node) and _is_about(node, names) for node in nodes)


def _ways(node: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
    """Names that a part of a text reads, and those that it gives what it reads."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield set(_names_in(node.iter)), set(_names_in(node.target))
    elif isinstance(node, ast.Assign):
        yield set(_names_in(node.value)), {name for one in node.targets for name in _names_in(one)}
    elif isinstance(node, _FUNCTIONS):
        given = (one.value for one in syntax.own_statements(node) if isinstance(one, ast.Return))
        yield {name for one in given if one is not None for name in _names_in(one)}, {node.name}


def _is_about(node: ast.AST, names: set[str]) -> bool:
    """True if what is turned is one of the names: of what is added to a variable, only the variable."""
    if isinstance(node, ast.AugAssign):
        return _mentions(node.target, names) or (not isinstance(node.op, ast.Add) and _mentions(node.value, names))
    return _mentions(node, names)


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(one in names for one in _names_in(node))


def _names_in(node: ast.AST) -> Iterator[str]:
    for one in syntax.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield one.id if isinstance(one, ast.Name) else one.attr


def _is_signed(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
