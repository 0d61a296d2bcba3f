"""Whether the text reads a result as an amount: a mean or a distance, and no code that only goes round."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted

# What a wrong number makes another wrong number of: other types, amounts, bounds.
_READS = frozenset(
    ["float", "double", "half", "bfloat16", "int", "long", "mean", "std", "var", "norm", "pow", "square", "sqrt", "abs",
     "absolute", "clamp", "clip", "clamp_", "clip_", "div", "true_divide", "max", "min", "amax", "amin",
     "mse_loss", "l1_loss"]
)  # fmt: skip
_CASTS = frozenset(["to", "type", "astype"])
_WIDER = ("float", "double", "half", "int32", "int64", "long")
# What hands the same numbers on.
_SAME = frozenset(
    ["copy", "clone", "reshape", "view", "ravel", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t",
     "contiguous", "from_numpy", "tensor", "as_tensor", "asarray", "array", "append", "stack"]
)  # fmt: skip
_DEPTH = 4


def is_read_as_number(scope: Scope, node: ast.AST, statement: ast.stmt, depth: int = 0) -> bool:
    """True if the result, under a name or not, is converted, averaged, divided or bounded."""
    parents = {id(child): parent for parent in syntax.walk(scope.node) for child in syntax.children(parent)}
    here: ast.AST = node
    while (parent := parents.get(id(here))) is not None and here is not statement:
        if _reads(parent, here):
            return True
        if not isinstance(parent, ast.expr) or not _hands_on(parent, here):
            break
        here = parent
    names = _names(statement, here)
    uses = [one for name in names for one in _loads(scope.node, name, statement.lineno)]
    statements = ((use, _statement_of(use, parents)) for use in uses)
    if depth < _DEPTH and any(one and is_read_as_number(scope, use, one, depth + 1) for use, one in statements):
        return True
    return depth < _DEPTH and isinstance(statement, ast.Return) and _is_read_by_caller(scope, depth)


def _reads(parent: ast.AST, use: ast.AST) -> bool:
    if isinstance(parent, ast.BinOp):
        divided = isinstance(parent.op, ast.Div) and parent.left is use
        squared = isinstance(parent.op, ast.Pow) and parent.left is use
        scaled = any(isinstance(one, ast.Constant) and type(one.value) is float for one in (parent.left, parent.right))
        return divided or squared or scaled
    if isinstance(parent, ast.Call) and use in parent.args:
        return dotted(parent.func).rpartition(".")[2] in _READS
    if isinstance(parent, ast.Call):
        return isinstance(use, ast.Attribute) and use.attr in _CASTS and _widens(parent)
    return isinstance(parent, ast.Attribute) and parent.attr in _READS


def _hands_on(parent: ast.expr, use: ast.AST) -> bool:
    if isinstance(parent, ast.Attribute):
        return parent.attr in _SAME | _CASTS
    if isinstance(parent, ast.Call) and use is parent.func:
        return isinstance(use, ast.Attribute) and use.attr in _SAME | _CASTS
    if isinstance(parent, ast.Call):
        return dotted(parent.func).rpartition(".")[2] in _SAME
    return isinstance(parent, ast.Subscript) and parent.value is use


def _widens(call: ast.Call) -> bool:
    return any(word in ast.unparse(one) for one in call.args for word in _WIDER)


def _names(statement: ast.stmt, value: ast.AST) -> list[str]:
    """What a statement calls the value; of `a += b` the name itself."""
    if isinstance(statement, ast.AugAssign):
        return [dotted(statement.target)]
    given = isinstance(statement, ast.Assign) and (statement.value is value or statement is value)
    return [dotted(one) for one in statement.targets] if given and isinstance(statement, ast.Assign) else []


def _loads(tree: ast.AST, name: str, line: int) -> list[ast.expr]:
    named = (one for one in syntax.walk(tree) if isinstance(one, (ast.Name, ast.Attribute)) and name)
    return [one for one in named if isinstance(one.ctx, ast.Load) and one.lineno >= line and dotted(one) == name]


def _statement_of(node: ast.AST, parents: dict[int, ast.AST]) -> ast.stmt | None:
    while not isinstance(node, ast.stmt) and id(node) in parents:
        node = parents[id(node)]
    return node if isinstance(node, ast.stmt) else None


def _is_read_by_caller(scope: Scope, depth: int) -> bool:
    caller = scope.caller
    name = scope.function.rpartition(".")[2]
    if caller is None or not name:
        return False
    parents = {id(child): parent for parent in syntax.walk(caller.node) for child in syntax.children(parent)}
    calls = [one for one in syntax.walk(caller.node) if isinstance(one, ast.Call)]
    mine = [one for one in calls if dotted(one.func).rpartition(".")[2] == name]
    pairs = ((one, _statement_of(one, parents)) for one in mine)
    return any(one is not None and is_read_as_number(caller, call, one, depth + 1) for call, one in pairs)
