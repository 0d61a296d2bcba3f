"""Sums and differences of bytes that another part of the text takes back, as a cipher does."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted

OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_NAMES: dict[str, type[ast.operator]] = {"add": ast.Add, "sub": ast.Sub, "subtract": ast.Sub}
# Methods that leave all there is of a result.
_KEEPS = frozenset(["to", "byte", "view", "reshape", "flatten", "clone", "contiguous"])


def is_undone(scope: Scope, node: ast.AST, statement: ast.stmt, sides: list[ast.expr]) -> bool:
    """True if some text takes the result back: `m + key` in one function, `c - key` in another or of what it gave."""
    own = _worked_out(node.value if isinstance(node, ast.Assign) else node)
    sign = OPPOSITE.get(own.sign) if own is not None else None
    back = sides if sign is ast.Sub else sides[1:]
    texts = {ast.unparse(side) for side in back if isinstance(side, (ast.Name, ast.Attribute))}
    trees = [scope.node, *(file.tree for file in scope.reading.places.latest() if file.tree is not None)]
    names = {named(node, statement)} - {""}
    if scope.function:
        names |= {name for tree in trees for name in _given_by(tree, scope.function.rpartition(".")[2])}
    mine = {ast.unparse(side) for side in sides}
    return sign is not None and any(
        one.sign is sign and one.right in texts and (one.left in names or one.left in one.parameters - mine)
        for tree in trees
        for one in _whole(tree)
        if one.function is not scope.node
    )


def _given_by(tree: ast.AST, function: str) -> set[str]:
    """Names of what a function gave back: `c = enc(m, key)`."""
    stores = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)]
    mine = (one for one in stores if _last_of(one.value) == function)
    return {dotted(target) for one in mine for target in one.targets} - {""}


def _last_of(call: ast.expr) -> str:
    return dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


class _Worked(NamedTuple):
    """A sum or a difference, in whichever way it is written."""

    left: ast.expr
    sign: type[ast.operator]
    right: ast.expr


def _worked_out(node: ast.AST) -> _Worked | None:
    """The sum or difference that `a - b`, `a -= b`, `a.sub(b)` and `torch.sub(a, b)` are."""
    if isinstance(node, ast.BinOp):
        return _Worked(node.left, type(node.op), node.right)
    if isinstance(node, ast.AugAssign):
        return _Worked(node.target, type(node.op), node.value)
    func = node.func if isinstance(node, ast.Call) else None
    sign = _NAMES.get(func.attr.rstrip("_")) if isinstance(func, ast.Attribute) else None
    if sign is None or not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute):
        return None
    sides = [*([] if dotted(func.value) == "torch" else [func.value]), *node.args]
    return _Worked(sides[0], sign, sides[1]) if len(sides) == 2 else None  # noqa: PLR2004


class _Whole(NamedTuple):
    """A sum or a difference of two names that is all that a statement does."""

    left: str
    sign: type[ast.operator]
    right: str
    parameters: frozenset[str] = frozenset()
    """Those of the function that it stands in."""
    function: ast.AST | None = None


@lru_cache(maxsize=64)
def _whole(tree: ast.AST) -> tuple[_Whole, ...]:
    """Operations that are all that a statement does, alone and as a part of each function around it."""
    found = [one for node in syntax.walk(tree) for one in _alone(_changes(node), frozenset(), None)]
    for function in syntax.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            parameters = frozenset(one.arg for one in function.args.args)
            parts = [function] if isinstance(function, ast.Lambda) else syntax.walk(function)
            given = (one.body if isinstance(one, ast.Lambda) else _changes(one) or _given_back(one) for one in parts)
            found += [own for one in given for own in _alone(one, parameters, function)]
    return tuple(found)


def _alone(value: ast.AST | None, parameters: frozenset[str], function: ast.AST | None) -> list[_Whole]:
    work = _worked_out(_bare(value)) if value is not None else None
    sides = (dotted(work.left), dotted(work.right)) if work is not None else ("", "")
    return [_Whole(sides[0], work.sign, sides[1], parameters, function)] if work is not None and all(sides) else []


def _changes(node: ast.AST) -> ast.AST | None:
    """What `c = …` and `c -= key` give a name, the latter as a whole."""
    return node.value if isinstance(node, ast.Assign) else node if isinstance(node, ast.AugAssign) else None


def _given_back(node: ast.AST) -> ast.expr | None:
    return node.value if isinstance(node, ast.Return) else None


def _bare(value: ast.AST) -> ast.AST:
    """`c - key` of `(c - key).to(torch.uint8).reshape(3, 3)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPS:
        value = value.func.value
    return value


def named(node: ast.AST, statement: ast.AST) -> str:
    """The one name that a statement gives the very node, or changes."""
    if isinstance(statement, ast.AugAssign) and node is statement:
        return dotted(statement.target)
    given = isinstance(statement, ast.Assign) and node in (statement, statement.value) and len(statement.targets) == 1
    return dotted(statement.targets[0]) if given and isinstance(statement, ast.Assign) else ""
