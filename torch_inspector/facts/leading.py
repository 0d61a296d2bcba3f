"""Functions whose call may run one that is known by its name: itself, and those that name it, or name one of these."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax


class Leading(NamedTuple):
    """Names by which they are called: `train()`, and `trainer.fit()`. A method has not the name of a function."""

    functions: frozenset[str]
    methods: frozenset[str]

    def named_in(self, node: ast.AST) -> bool:
        """True for the name of one of them, which is called or handed on."""
        if isinstance(node, ast.Name):
            return node.id in self.functions and isinstance(node.ctx, ast.Load)
        return isinstance(node, ast.Attribute) and node.attr in self.methods and isinstance(node.ctx, ast.Load)


def leading_to(names: Iterable[str], trees: list[ast.Module]) -> Leading:
    """All that lead to functions of these names, among those of some texts."""
    return _leading_to(frozenset(names), tuple(trees))


@lru_cache(maxsize=64)
def _leading_to(names: frozenset[str], trees: tuple[ast.Module, ...]) -> Leading:
    known = [one for tree in trees for one in _defined(tree)]
    wanted = {name.rpartition(".")[2] for name in names} - {""}
    found = Leading(
        frozenset(one.name for one in known if one.name in wanted and not one.owner),
        frozenset(one.name for one in known if one.name in wanted and one.owner),
    )
    while True:
        new = [one for one in known if one.functions & found.functions or one.methods & found.methods]
        makers = {one.owner for one in (*new, *known) if one.name == "__init__" and one.name in found.methods}
        functions = found.functions.union((one.name for one in new if not one.owner), makers)
        methods = found.methods.union(one.name for one in new if one.owner)
        if (functions, methods) == found:
            return found
        found = Leading(functions, methods)


class _Defined(NamedTuple):
    """A function of a text, with what it names and has not been given."""

    name: str
    owner: str
    """Its class; empty for a plain function."""
    functions: frozenset[str]
    methods: frozenset[str]


@lru_cache(maxsize=128)
def _defined(tree: ast.Module) -> tuple[_Defined, ...]:
    around = syntax.parents(tree)
    return tuple(_described(one, around[id(one)]) for one in syntax.functions_of(tree))


def _described(function: ast.FunctionDef | ast.AsyncFunctionDef, around: ast.AST) -> _Defined:
    inner = list(syntax.walk(function))
    names = [one for one in inner if isinstance(one, ast.Name)]
    own = syntax.parameters_of(function).union(one.id for one in names if isinstance(one.ctx, ast.Store))
    methods = frozenset(one.attr for one in inner if isinstance(one, ast.Attribute))
    owner = around.name if isinstance(around, ast.ClassDef) else ""
    return _Defined(function.name, owner, frozenset(one.id for one in names) - own, methods)
