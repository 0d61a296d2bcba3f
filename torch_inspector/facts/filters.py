"""Where a text picks entries out of a dictionary by their keys: `{k: v for k, v in state.items() if k in own}`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax


class Filter(NamedTuple):
    """One such place."""

    picked_from: str
    """The dictionary, as it is written."""
    key: str
    """What is asked for, of the variable for the key: `k`, `k[6:]`."""
    variable: str


def filters_in(source: str) -> list[Filter]:
    """All of them in a text, those that change the keys first."""
    tree = syntax.parse(source)
    found = [one for node in syntax.walk(tree) for one in _of(node)] if tree is not None else []
    return sorted(found, key=lambda one: one.key == one.variable)


def _of(node: ast.AST) -> Iterator[Filter]:
    if isinstance(node, ast.DictComp):
        yield from _asked(node.generators[0].target, node.generators[0].iter, node.generators[0].ifs)
    elif isinstance(node, ast.For):
        yield from _asked(node.target, node.iter, [one.test for one in node.body if isinstance(one, ast.If)])


def _asked(target: ast.expr, iterated: ast.expr, tests: list[ast.expr]) -> Iterator[Filter]:
    owner = iterated.func if isinstance(iterated, ast.Call) else None
    pair = target.elts if isinstance(target, ast.Tuple) else []
    if not isinstance(owner, ast.Attribute) or owner.attr != "items" or not pair or not isinstance(pair[0], ast.Name):
        return
    compared = (one for test in tests for one in syntax.walk(test) if isinstance(one, ast.Compare))
    for one in compared:
        names = {part.id for part in syntax.walk(one.left) if isinstance(part, ast.Name)}
        if isinstance(one.ops[0], ast.In) and pair[0].id in names:
            yield Filter(ast.unparse(owner.value), ast.unparse(one.left), pair[0].id)
