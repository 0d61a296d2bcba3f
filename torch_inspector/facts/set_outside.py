"""Where the text gives an attribute of a model a value after the model was made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.modules import UnsavedFact
    from torch_inspector.facts.run import Run


_TURNS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp)
# What such methods give is to be forgotten, and so is what torch makes of nothing: noise, or the state of a sequence.
_FORGETS = re.compile(r"reset|noise|sample|clear|init|begin|start", re.IGNORECASE)
_MADE = re.compile(r"torch\.(zeros|ones|full|empty|rand|randn|normal)(_like)?\(")
_FOR_NOW = "for now"


def is_lost(run: Run, one: UnsavedFact) -> bool:
    """True if the texts set the attribute for the model that was saved, once and for good, and for no other."""
    saved = one.other.removesuffix(f".{one.name}")
    owners = {owner for past in (*run.earlier, run) for owner in _owners(past.cell.source, one)}
    return owners == {saved} and not _is_called(run, saved)


def _is_called(run: Run, path: str) -> bool:
    """True if the cell calls the model that was saved, too: the two are compared, or work together."""
    keys = {one.key for one in run.after.modules if path == one.path or path.startswith(f"{one.path}.")}
    return any(call.module in keys for call in run.trace.forwards)


def _owners(source: str, one: UnsavedFact) -> Iterator[str]:
    """What the attribute is set of, and what a method that sets it is called of, outside of classes."""
    tree = syntax.parse(source)
    stack: list[tuple[ast.AST, bool]] = [(tree, False)] if tree is not None else []
    while stack:
        node, now = stack.pop()
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in (*one.setters, "__setattr__"):  # type: ignore[attr-defined]
            name, owner = node.func.attr, ast.unparse(node.func.value)  # type: ignore[attr-defined]
            yield _FOR_NOW if now or _FORGETS.search(name) else owner
        if isinstance(node, ast.Attribute) and node.attr == one.name and not isinstance(node.ctx, ast.Load):
            yield _FOR_NOW if now else ast.unparse(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            yield "setattr"
        inner = () if isinstance(node, ast.ClassDef) else syntax.children(node)
        stack.extend((each, now or _passes(node)) for each in inner)


def _passes(node: ast.AST) -> bool:
    """True for loops, whose turns each set another value, and for values that torch makes of nothing."""
    made = isinstance(node, ast.Assign) and _MADE.match(ast.unparse(node.value)) is not None
    return made or isinstance(node, _TURNS)
