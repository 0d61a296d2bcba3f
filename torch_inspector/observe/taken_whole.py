"""Whether a loss is used as a loss: shown, or kept under a name that says so, and nowhere turned round."""

from __future__ import annotations

import ast
import re
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_one_of
from torch_inspector.observe.signs import is_turned, scales, turns
from torch_inspector.observe.source import dotted
from torch_inspector.observe.untested import parents_of

# What leaves a number what it is, or reads it.
_READS = frozenset(
    ["cpu", "detach", "double", "exp", "float", "format", "item", "mean", "numpy", "repr", "round", "str", "sum",
     "tolist"]
)  # fmt: skip
_SHOWS = frozenset(["print", "display"])
_SHARES = re.compile(r"prob|confid|certain|(?<![a-z])conf(?![a-z])", re.IGNORECASE)
_HANDS_ON = (ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple, ast.Dict, ast.keyword, ast.Attribute, ast.ListComp)


def is_taken_whole(scope: Scope, call: ast.Call) -> bool:
    """False for what may ask for the mean probability: `-loss`, `1 + loss`, one number for each sample."""
    made = call.func.keywords if isinstance(call.func, ast.Call) else []
    layer = fields_of(scope.names.value(call.func))
    if layer.get("reduction") == "none" or any(_is_each(one) for one in (*made, *call.keywords)):
        return False
    child: ast.AST = call
    for child, parent in parents_of(scope.node, call):
        if isinstance(parent, ast.stmt):
            return _is_kept(scope, parent, child)
        if _is_shown(parent):
            return True
        if turns(parent) or not _hands_on(parent) or any(_is_negative(scope, one) for one in scales(parent)):
            return _is_collected(scope, parent)
    return False


def _is_negative(scope: Scope, factor: ast.expr) -> bool:
    """True for a variable that is a negative number by now: `sign` of `sign * loss`."""
    value: Any = scope.names.value(factor) if isinstance(factor, (ast.Name, ast.Attribute)) else None
    return is_one_of(value, (int, float)) and value < 0


def _is_each(keyword: ast.keyword) -> bool:
    """True for `reduction='none'`, and for what may be that."""
    known = isinstance(keyword.value, ast.Constant) and keyword.value.value in ("mean", "sum")
    return keyword.arg in ("reduction", "reduce", None) and not known


def _is_shown(node: ast.AST) -> bool:
    """True for `print("loss", loss)`; not where the words beside it speak of probabilities."""
    shows = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SHOWS
    words = (one.value for one in syntax.walk(node) if isinstance(one, ast.Constant)) if shows else ()
    return shows and not any(type(one) is str and _SHARES.search(one) for one in words)


def _hands_on(node: ast.AST) -> bool:
    """True for what has the same sign: `loss.item() * len(y)`, a part of a display or of a text."""
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in _READS or getattr(node.func, "attr", "") in _READS
    scaled = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div))
    return scaled or isinstance(node, _HANDS_ON)


def _is_collected(scope: Scope, node: ast.AST) -> bool:
    """True for `losses.append(loss)`: handed to something that says in its words what it is."""
    owner = dotted(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return _is_called_loss(scope, {owner}) if owner and not turns(node) else False


def _is_kept(scope: Scope, statement: ast.stmt, child: ast.AST) -> bool:
    """True for what the cell shows, and for a variable, an attribute or a function that says what it is."""
    if isinstance(statement, ast.Expr):
        return not scope.function and isinstance(child, ast.expr) and statement.value is child
    if isinstance(statement, ast.AugAssign):
        names = {dotted(statement.target)} if isinstance(statement.op, ast.Add) else set[str]()
    elif isinstance(statement, ast.Assign):
        names = {name for one in statement.targets for name in _targets(one)}
    else:
        names = {scope.function} if isinstance(statement, ast.Return) else set[str]()
    return _is_called_loss(scope, names)


def _targets(target: ast.expr) -> list[str]:
    """The names that are given a value; of an entry with its key: `history.loss` for `history['loss']`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [dotted(one) for one in target.elts]
    return [f"{dotted(target.value)}.{_key(target)}" if isinstance(target, ast.Subscript) else dotted(target)]


def _key(target: ast.Subscript) -> str:
    return str(target.slice.value) if isinstance(target.slice, ast.Constant) else ""


def _is_called_loss(scope: Scope, names: set[str]) -> bool:
    """True if names say that they are losses, and no text of the notebook so far turns one of them round."""
    files = (scope.reading.file, scope.file, *scope.reading.places.latest())
    trees = list({id(file.tree): file.tree for file in files if file.tree is not None}.values())
    called = bool(names) and all(map(says_loss, names))
    return called and not is_turned(trees, {name.rpartition(".")[2] for name in names})
