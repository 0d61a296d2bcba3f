"""What the text of a cell deletes: `del name`, `name = None`, and the same for attributes and elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from torch_inspector.observe.source import dotted

# Calls that somebody makes who wants memory back.
_COLLECTS = ("gc.collect", "collect", "empty_cache")
# Other calls that a cell may make which does nothing but free.
_SHOWS = ("print", "display", "memory_allocated", "memory_reserved", "memory_summary", "synchronize", "memory_info")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Deletion(NamedTuple):
    """One place that lets go of something by name."""

    path: str
    target: ast.expr
    line: int
    position: tuple[int, int]
    written: str
    """`del x` or `x = None`."""


@dataclass(frozen=True)
class Deletions:
    """All deletions in a cell, and whether it is after memory."""

    found: tuple[Deletion, ...]
    collects: bool
    """True if it calls `gc.collect()` or `empty_cache()`."""
    only: bool
    """True if the cell does nothing else but delete, collect and print."""
    names: frozenset[str]
    """Variables in its text that are neither deleted nor called on to collect."""


def deletions_in(tree: ast.Module) -> Deletions:
    """Reads a cell, the bodies of its functions left out."""
    stored: dict[str, tuple[int, int]] = {}
    for name, position in _stores(tree):
        stored[name] = min(position, stored.get(name, position))
    found = [one for one in _deletions(tree) if stored.get(_root(one.target), one.position) >= one.position]
    gone = {id(node) for one in found for node in ast.walk(one.target)}
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in gone)
    calls = [dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    collects = any(call.endswith(_COLLECTS) for call in calls)
    return Deletions(tuple(found), collects, all(map(_frees_or_shows, tree.body)), frozenset(names))


def _deletions(tree: ast.AST) -> Iterator[Deletion]:
    for node in _statements(tree):
        if isinstance(node, ast.Delete):
            for target in _flat(node.targets):
                yield from _deletion(target, node, "del {}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for part, value in _pairs(target, node.value):
                    if isinstance(value, ast.Constant) and value.value is None:
                        yield from _deletion(part, node, "{} = None")


def _deletion(target: ast.expr, node: ast.stmt, form: str) -> Iterator[Deletion]:
    if isinstance(target, ast.Name | ast.Attribute | ast.Subscript) and _root(target):
        path = ast.unparse(target)
        yield Deletion(path, target, node.lineno, (node.lineno, node.col_offset), form.format(path))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _flat(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs at the top level of the cell, in blocks too."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, _SCOPES):
            yield node
            yield from _statements(node)


def _stores(tree: ast.AST) -> Iterator[tuple[str, tuple[int, int]]]:
    """Variables that get a value other than None, and where."""
    empty = {id(node) for one in _deletions(tree) for node in ast.walk(one.target)}
    for node in _statements(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in empty:
            yield node.id, (node.lineno, node.col_offset)
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            yield alias.asname or alias.name.partition(".")[0], (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _frees_or_shows(node: ast.stmt) -> bool:
    """True for statements of a cell that is there to free something."""
    if isinstance(node, ast.If | ast.For | ast.With | ast.Try):
        return all(map(_frees_or_shows, chain(node.body, getattr(node, "orelse", ()), getattr(node, "finalbody", ()))))
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        return isinstance(node.value, ast.Call) and dotted(node.value.func).endswith((*_COLLECTS, *_SHOWS))
    if isinstance(node, ast.Assign):
        return all(
            isinstance(value, ast.Constant) and value.value is None
            for target in node.targets
            for _, value in _pairs(target, node.value)
        )
    return isinstance(node, ast.Delete | ast.Import | ast.ImportFrom | ast.Pass)
