"""A change in place of a leaf by what has a history of its own, written so that gradients reach both."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact


def out_of_place(error: ErrorFact, leaf: OperandFact | None) -> str:
    """The statement that makes a new tensor; empty where the line adds plain numbers, as an update by hand does."""
    others = [one for one in error.operands if leaf is not None and one.path != leaf.path]
    if leaf is None or not any(one.requires_grad and not one.is_leaf for one in others):
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
    made = ast.Call(ast.Attribute(call.func.value, call.func.attr.rstrip("_"), ast.Load()), call.args, call.keywords)
    return _said(error, ast.unparse(call.func.value), ast.unparse(made))


def _read(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _said(error: ErrorFact, name: str, made: str) -> str:
    """A new value for a variable of a function; elsewhere, or for a parameter, it needs a name of its own."""
    if error.place.function and name.isidentifier():
        return f"{name} = {made}"
    return f"changed = {made}  # use `changed` from here on, so that `{name}` stays what is trained"


def _of_copy(error: ErrorFact, target: ast.Subscript) -> str:
    name = ast.unparse(target.value)
    if error.place.function and name.isidentifier():
        return f"{name} = {name}.clone()  # before this line"
    changed = error.statement.replace(name, "changed", 1)
    return f"changed = {name}.clone()\n{changed}  # use `changed` from here on, so that `{name}` stays what is trained"
