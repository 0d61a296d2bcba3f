"""The code of some cells, in which losses are followed back through functions and through the layers of models."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.place import CodeFile

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Texts:
    """The code of some cells, and what in it is a model."""

    files: list[CodeFile]
    models: dict[str, str]
    """What the code calls the modules that ran, and their classes: `net`, `self.encoder`."""
    parameters: frozenset[str] = frozenset()
    """What the code of modules calls parameters of their own that no backward call reached: `self.scale`."""
    losses: dict[str, str] = field(default_factory=dict)
    """What the code calls modules without parameters that ran, and their classes: `criterion`."""

    def function(self, name: str) -> tuple[CodeFile, Function] | None:
        """A function or method of the user's, the latest of its name; for a model its `forward`."""
        kind = self.models.get(name) or self.losses.get(name)
        for file in self.files:
            if file.tree is not None:
                found = _forwards(file.tree).get(kind) if kind else _named(file.tree).get(name.rpartition(".")[2])
                if found is not None:
                    return file, found
        return None


@lru_cache(maxsize=64)
def _forwards(tree: ast.Module) -> dict[str, Function]:
    """The `forward` of each class of a text, the first that has one."""
    found: dict[str, Function] = {}
    for kind in (node for node in syntax.walk(tree) if isinstance(node, ast.ClassDef)):
        for one in kind.body:
            if isinstance(one, Function) and one.name == "forward":
                found.setdefault(kind.name, one)
    return found


@lru_cache(maxsize=64)
def _named(tree: ast.Module) -> dict[str, Function]:
    """The functions and methods of a text by name, the first of each."""
    found: dict[str, Function] = {}
    for node in syntax.walk(tree):
        if isinstance(node, Function):
            found.setdefault(node.name, node)
    return found


class Spot(NamedTuple):
    """An expression in its scope."""

    node: ast.expr
    scope: ast.AST
    file: CodeFile
    depth: int
    call: ast.Call | None = None
    """The call that led into the function around it."""
    outer: Spot | None = None
    """Where that call stands."""
    at: int | None = None
    """Which element of what a call gives back is meant; None for all of it."""
