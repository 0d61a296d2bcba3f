"""Variables that are computed once and kept, found in the text: `if self.bias is None: self.bias = …`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_LONGEST = 80


class Cache(NamedTuple):
    """A statement that gives a variable its value only where it has none."""

    line: int
    text: str


@lru_cache(maxsize=64)
def caches(tree: ast.AST) -> dict[str, Cache]:
    """By name those that no other statement gives a value, but for constants: a state gets a new one in each pass."""
    found: dict[str, Cache] = {}
    stored = [(name, node) for node in syntax.walk(tree) if isinstance(node, _STORES) for name in _names(node)]
    guarded = {(name, id(node)): node for name, node in _guarded(tree)}
    for name, node in stored:
        if (name, id(node)) in guarded:
            text = ast.unparse(node)
            found[name] = Cache(node.lineno, text if len(text) <= _LONGEST else f"{name} = ...")
    others = {name for name, node in stored if (name, id(node)) not in guarded and not _is_constant(name, node)}
    return {name: one for name, one in found.items() if name not in others}


_STORES = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)


def _guarded(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Statements under a condition that asks for the very name to which they give a value, not made from itself."""
    for branch in syntax.walk(tree):
        if not isinstance(branch, ast.If):
            continue
        asked = {dotted(node) for node in syntax.walk(branch.test)}
        for node in (inner for one in branch.body for inner in syntax.walk(one)):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                read = {dotted(part) for part in syntax.walk(node.value)}
                yield from ((name, node) for name in _names(node) if name in asked and name not in read)


def _names(node: ast.AST) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    parts = (part for target in targets for part in syntax.walk(target))
    stored = (part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store))
    return {dotted(part.value if isinstance(part, ast.Subscript) else part) for part in stored} - {""}


def _is_constant(name: str, node: ast.AST) -> bool:
    """True for `x = None`, and for `y, x = f(), None`."""
    value = None if isinstance(node, ast.AugAssign) else getattr(node, "value", None)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(node.targets[0].elts, value.elts, strict=False)
        value = next((given for target, given in pairs if dotted(target) == name), value)
    return isinstance(value, ast.Constant) or _is_empty(value)


def _is_empty(value: ast.AST | None) -> bool:
    """True for `{}`, `[]`, `dict()` and `[None] * n`."""
    if isinstance(value, ast.BinOp):
        value = value.left
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition(".")[2] in ("dict", "list", "OrderedDict") and not value.args
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, ast.List) and all(isinstance(one, ast.Constant) for one in value.elts)
