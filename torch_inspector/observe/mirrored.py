"""Two rows of layers in one module of which the second is the first in reverse: an encoder without a decoder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

from torch import nn

from torch_inspector.facts import Place, RepeatedFact, syntax
from torch_inspector.observe import kinds, layers, unlisted
from torch_inspector.observe.destined import ANYWHERE, destinations

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile

MIRROR = "mirror"

# Rows of one module that are compared.
_ROWS = 8


def mirrored_facts(path: str, module: Any) -> Iterator[RepeatedFact]:
    """One fact, without a line, per row of layers that holds those of another row of its module in reverse.

    Only `nn.Sequential`, which calls its layers, of layers of torch: flows, say, have a way back of their own.
    """
    for name, one in layers.walk_modules(module):
        parts = kinds.fields_of(one).get("_modules") if not unlisted.is_torch(type(one)) else None
        named = list(parts.items()) if kinds.is_registry(parts) else []
        rows = [(key, part, _learning(part)) for key, part in named if type(part) is nn.Sequential][:_ROWS]
        for (first, _, there), (second, row, here) in combinations(rows, 2):
            if len(here) > 1 and here == there[::-1] and here != there and _all_of_torch(row):
                where, owner = (".".join(filter(None, (path, name, key))) for key in (second, first))
                numbers = sum(layers.number_of(p) for _, p in layers.walk_parameters(row))
                yield RepeatedFact(where, MIRROR, len(here), "", numbers, Place(), "", in_call=False, mirrored=owner)


def _learning(row: Any) -> list[int]:
    """Addresses of the layers of a row that have parameters."""
    parts = list((kinds.fields_of(row).get("_modules") or {}).values())
    return [id(part) for part in parts if kinds.is_a(part, nn.Module) and any(layers.walk_parameters(part))]


def _all_of_torch(row: Any) -> bool:
    return all(unlisted.is_torch(type(one)) for _, one in layers.walk_modules(row))


def with_reversal(fact: RepeatedFact, files: list[CodeFile]) -> RepeatedFact | None:
    """The fact with the line that turns the layers round for that row; None if no cell has one."""
    name = fact.path.rpartition(".")[2]
    for file in files:
        for node in _reversals(file.tree) if file.tree is not None else ():
            if not destinations(file.tree, node).isdisjoint((name, ANYWHERE)):
                return fact._replace(place=Place(file.cell, node.lineno + file.offset), text=ast.unparse(node))
    return None


def _reversals(tree: ast.Module) -> Iterator[ast.expr]:
    """`reversed(encoder)` and `encoder[::-1]`."""
    for node in syntax.walk(tree):
        called = isinstance(node, ast.Call) and ast.unparse(node.func) == "reversed" and node.args
        sliced = isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "::-1"
        if isinstance(node, ast.expr) and (called or sliced):
            yield node
