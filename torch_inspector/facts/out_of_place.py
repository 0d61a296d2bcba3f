"""A change in place of a leaf by what has a history of its own, written so that gradients reach both."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact


_CUTS = (".detach()", ".data", ".item()", ".tolist()", ".numpy()")


def out_of_place(error: ErrorFact, leaf: OperandFact | None) -> str:
    """The statement that makes a new tensor; empty where the line adds plain numbers, as an update by hand does."""
    if leaf is None or not any(_brings_history(error, one) for one in error.operands if one.path != leaf.path):
        return ""
    tree = syntax.parse(error.statement)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript):
            return _of_copy(error, target)
    if isinstance(node, ast.AugAssign):
        return _said(error, ast.unparse(node.target), ast.unparse(ast.BinOp(_read(node.target), node.op, node.value)))
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.func.attr.endswith("_"):
        return ""
    owner = call.func.value
    if isinstance(owner, ast.Subscript) or call.func.attr == "copy_":
        return _of_copy(error, owner)
    made = ast.Call(ast.Attribute(owner, call.func.attr.rstrip("_"), ast.Load()), call.args, call.keywords)
    return _said(error, ast.unparse(owner), ast.unparse(made))


def _brings_history(error: ErrorFact, one: OperandFact) -> bool:
    """True for what was computed, unless the statement cuts it off, and for what computes: a layer that is called."""
    if one.kind != "tensor":
        return f"{one.path}(" in error.statement
    cut = any(f"{one.path}{end}" in error.statement for end in _CUTS)
    return one.requires_grad and not one.is_leaf and not cut


def _read(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _said(error: ErrorFact, name: str, made: str) -> str:
    """A new value for a variable of a function; elsewhere, or for a parameter, it needs a name of its own."""
    if error.place.function and name.isidentifier():
        return f"{name} = {made}"
    return f"changed = {made}  # use `changed` from here on, so that `{name}` stays what is trained"


def _of_copy(error: ErrorFact, target: ast.expr) -> str:
    """The same statement on a copy of the leaf: `x[0] = h`, `x[0].copy_(h)`."""
    name = ast.unparse(target.value if isinstance(target, ast.Subscript) else target)
    if error.place.function and name.isidentifier():
        return f"{name} = {name}.clone()  # before this line"
    changed = error.statement.replace(name, "changed", 1)
    return f"changed = {name}.clone()\n{changed}  # use `changed` from here on, so that `{name}` stays what is trained"
