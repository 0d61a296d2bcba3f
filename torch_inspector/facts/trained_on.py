"""What a text calls `backward()` on: the expressions, followed back through names, and the functions that do it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from torch_inspector.facts import syntax

_OFF = ("no_grad", "inference_mode", "set_grad_enabled")
_STORES = (ast.Assign, ast.AugAssign, ast.AnnAssign)

Learning = Mapping[str, frozenset[int]]
"""Functions that call `backward()` on what they are given, with the places of these arguments."""


class Trained(NamedTuple):
    """What a block of statements trains on."""

    nodes: frozenset[int]
    """Ids of the expressions that a `backward()` goes back through."""
    names: frozenset[str]
    """Names from outside that it goes back to."""


def trained_in(body: list[ast.stmt], learning: Learning, *, returned: bool = False) -> Trained:
    """What a block calls `backward()` on; if `returned`, somebody does so on what it gives back as well."""
    nodes, names = set[int](), set[str]()
    every = [node for one in body for node in syntax.walk(one)]
    off = {id(node) for one in every if is_off(one) for node in syntax.walk(one)}
    branched = {id(node) for one in every if isinstance(one, ast.If) for node in syntax.walk(one)}
    asked = (ast.Call, ast.Return, *_STORES)
    found = [one for one in every if isinstance(one, asked) and id(one) not in off]
    for one in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        if isinstance(one, _STORES):
            stored = {part.id for part in _targets(one) if isinstance(part, ast.Name)}
            wanted = [one.value] if stored & names and one.value is not None else []
            names -= stored if id(one) not in branched and not isinstance(one, ast.AugAssign) else set()
        elif isinstance(one, ast.Return):
            wanted = [one.value] if returned and one.value is not None else []
        else:
            wanted = list(_goes_back(one, learning))
        inside = [part for each in wanted for part in syntax.walk(each)]
        nodes |= {id(part) for part in inside}
        names |= {part.id for part in inside if isinstance(part, ast.Name)}
    return Trained(frozenset(nodes) - off, frozenset(names))


def learning_in(functions: Iterable[ast.FunctionDef]) -> dict[str, frozenset[int]]:
    """Functions that call `backward()` on an argument; of two of one name the later one."""
    found: dict[str, frozenset[int]] = {}
    for one in functions:
        names = frozenset[str]() if is_off(one) else trained_in(one.body, {}).names
        found[one.name] = frozenset(place for place, given in enumerate(one.args.args) if given.arg in names)
    return found


def is_off(node: ast.AST) -> bool:
    """True for a block or a function in which no gradients are recorded."""
    if isinstance(node, ast.With):
        return any(name in ast.unparse(one.context_expr) for one in node.items for name in _OFF)
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(name in ast.unparse(one) for one in decorators for name in _OFF)


def _goes_back(call: ast.Call, learning: Learning) -> Iterator[ast.expr]:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "backward" or name.endswith("_backward"):
        yield call
    elif isinstance(call.func, ast.Name):
        yield from (one for place, one in enumerate(call.args) if place in learning.get(name, ()))


def _targets(one: ast.AST) -> Iterator[ast.expr]:
    for target in getattr(one, "targets", None) or [one.target]:  # type: ignore[attr-defined]
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
