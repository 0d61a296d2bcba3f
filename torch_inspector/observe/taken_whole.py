"""Whether a loss is used as a loss: shown, added up, given back, not turned round."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.untested import parents_of

_TURNS = frozenset(["abs", "abs_", "neg", "neg_", "negative", "sub", "rsub", "add"])


def is_taken_whole(scope: Scope, call: ast.Call) -> bool:
    """False for what asks for the mean probability: `-loss`, `1 + loss`, one number for each sample."""
    made = call.func.keywords if isinstance(call.func, ast.Call) else []
    layer = fields_of(scope.names.value(call.func))
    if layer.get("reduction") == "none" or any(_is_each(one) for one in (*made, *call.keywords)):
        return False
    for _, parent in parents_of(scope.node, call):
        if isinstance(parent, ast.stmt):
            return _is_kept(scope, parent)
        if _turns(parent):
            return False
    return False


def _is_each(keyword: ast.keyword) -> bool:
    """True for `reduction='none'`, and for what may be that."""
    known = isinstance(keyword.value, ast.Constant) and keyword.value.value in ("mean", "sum")
    return keyword.arg in ("reduction", "reduce", None) and not known


def _is_kept(scope: Scope, statement: ast.stmt) -> bool:
    """True if the statement does not turn the loss round, and nothing does so later with the variable that has it."""
    if isinstance(statement, ast.AugAssign):
        names = {dotted(statement.target)} if isinstance(statement.op, ast.Add) else set[str]()
    elif isinstance(statement, ast.Assign):
        names = {dotted(one) for one in statement.targets}
    else:
        return isinstance(statement, (ast.Expr, ast.Return))
    later = (one for one in syntax.own_expressions(scope.node) if _turns(one))
    uses = (part for one in later for part in syntax.walk(one) if isinstance(part, ast.expr))
    return bool(names) and "" not in names and not any(dotted(part) in names for part in uses)


def _turns(node: ast.AST) -> bool:
    """True for signs and sums, which may turn a mean probability into an error; for a product with a sign as well."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.BinOp):
        signed = any(isinstance(one, ast.UnaryOp) for one in (node.left, node.right))
        return isinstance(node.op, (ast.Add, ast.Sub)) or signed
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.op, ast.Add)
    if isinstance(node, ast.Attribute):
        return node.attr in _TURNS
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _TURNS
