"""Factors that many layers multiply one after another, as the scales of a flow."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.sole import Written

_REPEATS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
_FEW = 2


def is_stacked_factor(run: Run, one: Written) -> bool:
    """True if an expression is a factor in the method of a class of which the texts make several objects."""
    tree, line = syntax.parse(run.source_of(one.place.cell)), one.place.line
    if tree is None or line is None:
        return False
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    owner = next((node for node in classes if node.lineno <= line <= (node.end_lineno or line)), None)
    return owner is not None and _is_factor(owner, one.text) and _is_made_often(run, owner.name)


def _is_factor(owner: ast.ClassDef, text: str) -> bool:
    products = (one for one in syntax.walk(owner) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult))
    return any(text in (ast.unparse(one.left), ast.unparse(one.right)) for one in products)


def _is_made_often(run: Run, name: str) -> bool:
    """True if a class is called in a loop, or in several places."""
    trees = (syntax.parse(source) for source in dict.fromkeys(past.cell.source for past in (*run.earlier, run)))
    calls, repeated = 0, False
    for tree in (one for one in trees if one is not None):
        calls += sum(_makes(node, name) for node in syntax.walk(tree))
        loops = (node for node in syntax.walk(tree) if isinstance(node, _REPEATS))
        repeated = repeated or any(_makes(node, name) for loop in loops for node in syntax.walk(loop))
    return repeated or calls >= _FEW


def _makes(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
