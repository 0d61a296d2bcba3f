"""Results that do not fit into small whole numbers and are right all the same, by what the text makes of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted
from torch_inspector.observe.undone import OPPOSITE, named, texts_around

_OF_TORCH = frozenset(["from_numpy", "tensor", "as_tensor", "asarray"])
# What leaves a wrong number wrong: methods, and functions of NumPy.
_METHODS = frozenset(["copy", "reshape", "ravel", "flatten", "squeeze", "transpose", "mean", "sum"])
_FUNCTIONS = frozenset(["abs", "absolute", "asarray", "array", "ascontiguousarray", "mean", "sum"])
# What may take of it only what is right, whichever number it is: zero or not, modulo 256, the smaller one.
_PICKS = re.compile(r"[<>]|[!=]=|\b(bool|int8|int16|view|where|minimum|maximum|any|all|nonzero|count_nonzero|cumsum)\b")
_COMPARES = frozenset(["gt", "lt", "ge", "le", "greater", "less", "greater_equal", "less_equal"])
_ZERO = frozenset(["ne", "eq", "any", "all", "bool", "count_nonzero", "nonzero"])
# Zero only where all are.
_TOTALS = frozenset(["abs", "max", "amax", "sum", "item"])
_CASTS = frozenset(["to", "view", "type"])
_ROUND = frozenset(["torch.int8", "torch.int16", "torch.bool", "bool"])


def is_meant(scope: Scope, node: ast.AST, statement: ast.stmt, sides: list[ast.expr]) -> bool:
    """True for a difference that is only compared with 0, or chosen by a comparison; and for what is taken back."""
    one, two = (ast.unparse(side) for side in sides)
    nodes, name = list(syntax.walk(scope.node)), named(node, statement)
    text = name or ast.unparse(node)
    if any(_is_back(part, text, node, sides) for part in nodes) or _takes_back(scope, node, sides):
        return True
    difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    difference = difference or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("sub", "subtract")))
    if not difference:
        return False
    if _chooses(nodes, node, name, (one, two)):
        return True
    parents = syntax.parents(scope.node)
    uses = _reads(scope.node, name) if name else [node]
    return bool(uses) and all(_asks_for_zero(use, parents) or _asks_for_sign(use, parents) for use in uses)


def becomes_tensor(scope: Scope, node: ast.AST, statement: ast.AST) -> bool:
    """True if the very result is given to `torch.from_numpy`, under a name or in the call, and to nobody else."""
    if _PICKS.search(ast.unparse(statement)):
        return False
    parents, use = syntax.parents(scope.node), node
    for _ in range(len(parents)):
        parent = parents.get(id(use))
        if isinstance(parent, ast.Call) and use in parent.args and _is_of_torch(parent):
            return _stays(scope, parent)
        if isinstance(parent, (ast.Call, ast.Attribute, ast.BinOp)):
            if not _hands_on(parent, use):
                return False
            use = parent
            continue
        if isinstance(parent, ast.Return):
            return _is_given_on(scope)
        name = named(use, parent) if isinstance(parent, ast.Assign) else ""
        uses = _reads(scope.node, name) if name else []
        if len(uses) != 1 or _PICKS.search(ast.unparse(_around(scope, uses[0]))):
            return False
        use = uses[0]
    return False


def _is_given_on(scope: Scope) -> bool:
    """True if a function is called once, and what it gives back goes to torch."""
    caller = scope.caller
    if caller is None or not scope.function:
        return False
    calls = [one for one in syntax.walk(caller.node) if isinstance(one, ast.Call)]
    mine = [one for one in calls if dotted(one.func).rpartition(".")[2] == scope.function.rpartition(".")[2]]
    if len(mine) != 1:
        return False
    return becomes_tensor(caller, mine[0], _around(caller, mine[0]))


def _stays(scope: Scope, made: ast.Call) -> bool:
    """True if nothing that is done with the tensor may pick the numbers that are right."""
    statement = _around(scope, made)
    name = named(made, statement)
    places = [statement, *(_around(scope, one) for one in (_reads(scope.node, name) if name else ()))]
    return not any(_PICKS.search(ast.unparse(one)) for one in places)


def _hands_on(parent: ast.Call | ast.Attribute | ast.BinOp, use: ast.AST) -> bool:
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Div) and parent.left is use and isinstance(parent.right, ast.Constant)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _METHODS or parent.attr == "astype"
    if use is parent.func:
        method = getattr(use, "attr", "")
        return method in _METHODS or (method == "astype" and any("float" in ast.unparse(one) for one in parent.args))
    space, _, function = dotted(parent.func).rpartition(".")
    return use in parent.args and space in ("np", "numpy") and function in _FUNCTIONS


def _is_of_torch(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in _OF_TORCH and dotted(func.value) == "torch"


def _is_back(part: ast.AST, name: str, node: ast.AST, sides: list[ast.expr]) -> bool:
    """True for `delta + b` and `a - delta`, where `delta` is `a - b`; for `total - b`, where `total` is `a + b`."""
    sign = getattr(node.value if isinstance(node, ast.Assign) else node, "op", None)
    if not isinstance(sign, (ast.Add, ast.Sub)):
        return False
    if isinstance(part, ast.AugAssign) and part is not node:
        undoes = isinstance(part.op, OPPOSITE[type(sign)]) and ast.unparse(part.target) == name
        return undoes and ast.unparse(part.value) in [ast.unparse(side) for side in sides[isinstance(sign, ast.Sub) :]]
    if not isinstance(part, ast.BinOp) or not isinstance(part.op, (ast.Add, ast.Sub)):
        return False
    one, two = (ast.unparse(side) for side in sides)
    left, right, added = part.left, part.right, isinstance(part.op, ast.Add)
    if isinstance(sign, ast.Sub):
        if added:
            return any(_says(left, first) and _says(right, last) for first, last in ((name, two), (two, name)))
        return _says(left, one) and _says(right, name)
    return not added and _says(left, name) and (_says(right, one) or _says(right, two))


def _says(node: ast.expr, text: str) -> bool:
    """True if an expression is written like that; most are told by their name, without their text."""
    return node.id == text if isinstance(node, ast.Name) else ast.unparse(node) == text


def _takes_back(scope: Scope, node: ast.AST, sides: list[ast.expr]) -> bool:
    """True for `enc + b` itself, where `enc` was made as `a - b`, here or in a cell before."""
    value = node.value if isinstance(node, ast.Assign) else node
    sign = type(value.op) if isinstance(value, (ast.BinOp, ast.AugAssign)) else None
    opposite = OPPOSITE.get(sign) if sign is not None else None
    pairs = [texts[::way] for texts in (_texts(sides, {}), _texts(sides, scope.arguments)) for way in (1, -1)]
    if opposite is None:
        return False
    texts = texts_around(scope)
    # Where there was no time to read them, nothing is to be said.
    return texts is None or any(_makes(one, opposite, pairs) for text in texts for one in text.changed)


def _makes(one: ast.Assign | ast.AugAssign, opposite: type[ast.operator], pairs: list[list[str]]) -> bool:
    """True if a statement gives one of two what the opposite makes of it and the other."""
    target, what = (one.targets[0] if isinstance(one, ast.Assign) else one.target), one.value
    last = getattr(target, "attr", getattr(target, "id", ""))
    if last and not any(name.endswith(last) for name, _ in pairs):
        return False
    if isinstance(one, ast.AugAssign):
        parts = [one.value] if isinstance(one.op, opposite) else []
    else:
        undone = isinstance(what, ast.BinOp) and isinstance(what.op, opposite)
        parts = [what.left, what.right] if undone and isinstance(what, ast.BinOp) else []
        parts = parts[1:] if opposite is ast.Sub else parts
    others = {other for name, other in pairs if parts and name == ast.unparse(target)}
    return bool(others & {ast.unparse(part) for part in parts}) if others else False


def _texts(sides: list[ast.expr], arguments: Mapping[str, ast.expr]) -> list[str]:
    """What both sides are called, by a function itself or by its caller."""
    return [ast.unparse(arguments.get(ast.unparse(side), side)) for side in sides]


def _chooses(nodes: list[ast.AST], node: ast.AST, name: str, sides: tuple[str, str]) -> bool:
    """True if a statement has the result and a comparison of the same two in it, or a name of such a comparison."""
    tests = [one for one in nodes if _compares(one, *sides)]
    stored = (one for one in nodes if isinstance(one, ast.Assign) and any(part in tests for part in syntax.walk(one)))
    masks = {dotted(target) for one in stored for target in one.targets} - {""}
    branches = (ast.If, ast.While)
    for one in nodes if tests else ():
        if isinstance(one, ast.stmt) and (isinstance(one, branches) or not hasattr(one, "body")):
            parts = list(syntax.walk(one))
            named = {part.id for part in parts if isinstance(part, ast.Name)}
            if (node in parts or name in named) and (masks & named or any(part in tests for part in parts)):
                return True
    return False


def _compares(part: ast.AST, one: str, two: str) -> bool:
    """True for `a > b`, `torch.gt(a, b)` and `a.gt(b)`."""
    if isinstance(part, ast.Compare):
        return {one, two} <= {ast.unparse(side) for side in (part.left, *part.comparators)}
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or part.func.attr not in _COMPARES:
        return False
    return {one, two} <= {ast.unparse(side) for side in (part.func.value, *part.args)}


def _asks_for_sign(use: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """True for `d.to(torch.int8)`, the shorter way round a circle, and for `d.to(torch.bool)`."""
    method = parents.get(id(use))
    call = parents.get(id(method)) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not method:
        return False
    types = {ast.unparse(one) for one in (*call.args, *(one.value for one in call.keywords))}
    return method.attr == "char" or (method.attr in _CASTS and bool(types & _ROUND))


def _asks_for_zero(use: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """True for `d != 0`, `d.any()`, `torch.count_nonzero(d)` and `d.abs().max() == 0`."""
    parent = parents.get(id(use))
    if isinstance(parent, ast.Attribute) and parent.attr in _TOTALS:
        call = parents.get(id(parent))
        return isinstance(call, ast.Call) and call.func is parent and _asks_for_zero(call, parents)
    if isinstance(parent, ast.Compare):
        other = [one for one in (parent.left, *parent.comparators) if one is not use]
        zero = len(other) == 1 and isinstance(other[0], ast.Constant) and other[0].value == 0
        return zero and isinstance(parent.ops[0], (ast.Eq, ast.NotEq))
    if isinstance(parent, ast.Call):
        return use in parent.args and dotted(parent.func).rpartition(".")[2] in _ZERO
    return isinstance(parent, ast.Attribute) and parent.attr in _ZERO


def _reads(tree: ast.AST, name: str) -> list[ast.AST]:
    names = (one for one in syntax.walk(tree) if isinstance(one, ast.Name))
    return [one for one in names if one.id == name and isinstance(one.ctx, ast.Load)]


def _around(scope: Scope, node: ast.AST) -> ast.AST:
    """The statement around a node; in a lambda, that."""
    return syntax.statement_of(node, syntax.parents(scope.node)) or scope.node
