"""Where the text gives an attribute of a model a value after the model was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.modules import UnsavedFact
    from torch_inspector.facts.run import Run


def is_lost(run: Run, one: UnsavedFact) -> bool:
    """True if the texts set the attribute for the model that was saved, and for no other."""
    owners = {owner for past in (*run.earlier, run) for owner in _owners(past.cell.source, one)}
    return owners == {one.other.removesuffix(f".{one.name}")}


def _owners(source: str, one: UnsavedFact) -> Iterator[str]:
    """What the attribute is set of, and what a method that sets it is called of, outside of classes."""
    tree = syntax.parse(source)
    stack: list[ast.AST] = [tree] if tree is not None else []
    while stack:
        node = stack.pop()
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in (*one.setters, "__setattr__"):  # type: ignore[attr-defined]
            yield ast.unparse(node.func.value)  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and node.attr == one.name and not isinstance(node.ctx, ast.Load):
            yield ast.unparse(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            yield "setattr"
        stack.extend(() if isinstance(node, ast.ClassDef) else syntax.children(node))
