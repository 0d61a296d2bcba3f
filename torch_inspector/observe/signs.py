"""Where a text turns a number round: `-loss`, `1 + loss`, `loss.mul(-1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax

_TURNS = frozenset(
    ["abs", "abs_", "absolute", "neg", "neg_", "negative", "sub", "sub_", "subtract", "rsub", "add", "add_"]
)
# Whose functions are given what they turn: `torch.neg(loss)`.
_OWNERS = frozenset(["torch", "np", "numpy", "operator", "math"])
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
    return isinstance(node, ast.Call) and (_is_given(node) or any(_is_signed(one) for one in node.args))


def scales(node: ast.AST) -> tuple[ast.expr, ...]:
    """The factors of a product or quotient, `sign` and `loss` of `sign * loss`: one may be a negative number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return node.left, node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Mult, ast.Div)):
        return node.target, node.value
    return tuple(node.args) if isinstance(node, ast.Call) and _last(node.func) in ("mul", "multiply", "div") else ()


def _is_given(call: ast.Call) -> bool:
    """True for `neg(loss)` and `torch.neg(loss)`."""
    function = call.func
    owner = getattr(function.value, "id", "") if isinstance(function, ast.Attribute) else ""
    return _last(function) in _TURNS and (isinstance(function, ast.Name) or owner in _OWNERS)


def _last(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))


def is_turned(trees: Iterable[ast.Module], names: set[str]) -> bool:
    """True if some text turns a variable, attribute or function of these names, or what is made of it.

    Args:
        trees: The texts.
        names: Last parts of what is written: `total` for `self.total`.
    """
    read = [_read(tree) for tree in trees]
    ways = [way for one in read for way in one.ways]
    negative = frozenset[str]().union(*(one.negative for one in read))
    for _ in range(_HANDED_ON):
        names = names.union(*(to for come_from, to in ways if not names.isdisjoint(come_from)))
    scaled = (scaled for one in read for scaled in one.scaled if not negative.isdisjoint(scaled))
    return any(not names.isdisjoint(some) for some in (*(one.turned for one in read), *scaled))


class _Read(NamedTuple):
    """What a text says of signs."""

    ways: tuple[_Way, ...]
    """The ways that numbers go."""
    turned: frozenset[str]
    """Names in all that it turns."""
    negative: frozenset[str]
    """Names that it gives a negative number: `sign = -1`."""
    scaled: tuple[set[str], ...]
    """Names in each product."""


@lru_cache(maxsize=64)
def _read(tree: ast.Module) -> _Read:
    nodes = list(syntax.walk(tree))
    turned = frozenset(name for node in nodes if turns(node) for name in _turned(node))
    signed = (node for node in nodes if isinstance(node, ast.Assign) and _is_signed(node.value))
    negative = frozenset(name for node in signed for target in node.targets for name in _names_in(target))
    scaled = tuple({name for part in scales(node) for name in _names_in(part)} for node in nodes if scales(node))
    return _Read(tuple(way for node in nodes for way in _ways(node)), turned, negative, scaled)


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
