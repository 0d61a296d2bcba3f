"""Whether the text reads a result as an amount: a mean or a distance, and no code that only goes round."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import is_tensor
from torch_inspector.observe.source import dotted

# What a wrong number makes another wrong number of: other types, amounts, bounds.
_READS = frozenset(
    ["float", "double", "half", "bfloat16", "mean", "std", "var", "norm", "pow", "square", "sqrt", "abs",
     "absolute", "clamp", "clip", "clamp_", "clip_", "div", "true_divide", "max", "min", "amax", "amin",
     "mse_loss", "l1_loss"]
)  # fmt: skip
# The sum of products is one; that of sums may be a checksum.
_OF_PRODUCTS = _READS | {"sum"}
_CASTS = frozenset(["to", "type", "astype", "type_as"])
_TYPES = frozenset([*_CASTS, "float", "double", "half", "bfloat16"])
# Whole numbers of more bits may be the places of a table, or the rest modulo 256: they hand on what is meant.
_WIDER = ("float", "double", "half")
_COUNTS = frozenset(["histc", "histogram", "bincount", "one_hot", "unique"])
# What hands the same numbers on.
_SAME = frozenset(
    ["copy", "clone", "reshape", "view", "ravel", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "T",
     "contiguous", "from_numpy", "tensor", "as_tensor", "asarray", "array", "append", "stack", "cpu", "cuda", "numpy",
     "detach", "flip", "roll", "expand", "repeat", "int", "long", "cat", "concat", "concatenate", "maximum", "values",
     "items", "list", "tuple", "enumerate"]
)  # fmt: skip
# An average of a few; a larger divisor may be there for the upper bits.
_FEW = 10
_DEPTH = 4
_SEVERAL = (ast.Dict, ast.List, ast.Tuple)
# What is made without a type has this one.
_FLOATS = frozenset(["torch.ones", "torch.zeros", "torch.rand", "torch.randn", "torch.empty"])
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]


def reads_of(operation: str) -> frozenset[str]:
    """Functions and methods that read the result of an operation as an amount."""
    return _OF_PRODUCTS if operation in ("mul", "pow") else _READS


class _Search(NamedTuple):
    """What is looked for, and where."""

    reads: frozenset[str]
    depth: int
    seen: set[tuple[int, str]]
    """Variables that are followed already, each with its scope: every one is looked at once."""


def is_read_as_number(scope: Scope, node: ast.AST, statement: ast.stmt, reads: frozenset[str] = _READS) -> bool:
    """True if the result, under a name or not, is converted, averaged, divided or bounded."""
    return _is_read(scope, node, statement, _Search(reads, 0, set()))


def _is_read(scope: Scope, node: ast.AST, statement: ast.stmt, search: _Search) -> bool:
    parents = _parents(scope.node)
    here, key = node, None
    while (parent := parents.get(id(here))) is not None and here is not statement:
        if _reads(scope, parent, here, search.reads):
            return not _is_counted(parents, parent)
        if not isinstance(parent, ast.expr) or not _hands_on(parent, here):
            break
        key = _key(parent, here) if isinstance(parent, _SEVERAL) else key
        here = parent
    if search.depth >= _DEPTH:
        return False
    deeper = search._replace(depth=search.depth + 1)
    for name in _names(parents.get(id(here)), statement, here, node):
        uses = _loads(scope.node, name, statement.lineno) if (id(scope.node), name) not in search.seen else []
        search.seen.add((id(scope.node), name))
        own = ((use, _statement_of(use, parents)) for use in uses if not _is_another(parents.get(id(use)), key))
        if any(one is not None and _is_read(scope, use, one, deeper) for use, one in own):
            return True
    alone = isinstance(statement, ast.Return) and not isinstance(here, _SEVERAL)
    return alone and _is_read_by_caller(scope, deeper)


@lru_cache(maxsize=64)
def _parents(tree: ast.AST) -> dict[int, ast.AST]:
    return {id(child): parent for parent in syntax.walk(tree) for child in syntax.children(parent)}


def _reads(scope: Scope, parent: ast.AST, use: ast.AST, reads: frozenset[str]) -> bool:
    if isinstance(parent, ast.BinOp):
        squared = isinstance(parent.op, ast.Pow) and parent.left is use
        scaled = any(isinstance(one, ast.Constant) and type(one.value) is float for one in (parent.left, parent.right))
        return _divides(parent, use) or squared or scaled
    if isinstance(parent, ast.Call) and use in parent.args:
        return dotted(parent.func).rpartition(".")[2] in reads
    if isinstance(parent, ast.Call):
        return isinstance(use, ast.Attribute) and use.attr in _CASTS and _widens(scope, parent)
    return isinstance(parent, ast.Attribute) and parent.attr in reads


def _divides(parent: ast.BinOp, use: ast.AST) -> bool:
    """True for `total / n`, `total // 2` and `total // n`."""
    if parent.left is not use or not isinstance(parent.op, (ast.Div, ast.FloorDiv)):
        return False
    by = parent.right.value if isinstance(parent.right, ast.Constant) else 1
    return isinstance(parent.op, ast.Div) or (type(by) is int and by <= _FEW)


def _is_counted(parents: dict[int, ast.AST], read: ast.AST) -> bool:
    """True for a number of another type that is only counted: `torch.histc(cipher.float(), 256)`."""
    call = parents.get(id(read)) if isinstance(read, ast.Attribute) else read
    around = parents.get(id(call))
    cast = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _TYPES
    return cast and isinstance(around, ast.Call) and dotted(around.func).rpartition(".")[2] in _COUNTS


def _hands_on(parent: ast.expr, use: ast.AST) -> bool:
    if isinstance(parent, _SEVERAL):
        return True
    if isinstance(parent, ast.Attribute):
        return parent.attr in _SAME | _CASTS
    if isinstance(parent, ast.Call) and use is parent.func:
        return isinstance(use, ast.Attribute) and use.attr in _SAME | _CASTS
    if isinstance(parent, ast.Call):
        return dotted(parent.func).rpartition(".")[2] in _SAME
    return isinstance(parent, ast.Subscript) and parent.value is use


def _key(parent: ast.Dict | ast.List | ast.Tuple, use: ast.AST) -> object:
    """The key or the place of a value in a container written out."""
    if not isinstance(parent, ast.Dict):
        return parent.elts.index(use) if isinstance(use, ast.expr) else None
    key = parent.keys[parent.values.index(use)] if use in parent.values else None
    return key.value if isinstance(key, ast.Constant) else None


def _is_another(parent: ast.AST | None, key: object) -> bool:
    """True if a container is asked for another of its values."""
    asked = parent.slice if isinstance(parent, ast.Subscript) else None
    return key is not None and isinstance(asked, ast.Constant) and asked.value != key


def _widens(scope: Scope, call: ast.Call) -> bool:
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
    named = any(word in ast.unparse(one) for one in given for word in _WIDER)
    return named or any(_is_float(scope, one) for one in given)


def _is_float(scope: Scope, other: ast.expr) -> bool:
    """True for a tensor of floating point numbers, whose type is taken over."""
    value = scope.names.value(other)
    if is_tensor(value):
        return bool(_dtype_of(value).is_floating_point)
    made = isinstance(other, ast.Call) and not any(one.arg == "dtype" for one in other.keywords)
    return made and isinstance(other, ast.Call) and dotted(other.func) in _FLOATS


def _names(parent: ast.AST | None, statement: ast.stmt, value: ast.AST, node: ast.AST) -> list[str]:
    """What a statement calls the value; of `a += b` the name itself, of a loop through it what it calls each part."""
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is value:
        return [dotted(one) for one in _each(parent.target, value)]
    if isinstance(statement, ast.AugAssign):
        return [dotted(statement.target)]
    given = isinstance(statement, ast.Assign) and (statement.value is value or statement is value)
    targets = statement.targets if given and isinstance(statement, ast.Assign) else []
    return [dotted(own) for one in targets for own in _given(one, value, node)]


def _given(target: ast.expr, value: ast.AST, node: ast.AST) -> list[ast.expr]:
    """The target of one of several values: `c` of `c, d = a - b, b`."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [target]
    if isinstance(value, ast.Call):
        return []  # a function that gives back several, of which this may be any
    if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
        return target.elts
    pairs = zip(target.elts, value.elts, strict=True)
    return [one for one, own in pairs if any(part is node for part in syntax.walk(own))]


def _each(target: ast.expr, value: ast.AST) -> list[ast.expr]:
    """What a loop calls a part: the last name of `for i, row in enumerate(rows)`."""
    parts = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return parts[-1:] if isinstance(value, ast.Call) else parts


def _loads(tree: ast.AST, name: str, line: int) -> list[ast.expr]:
    named = (one for one in syntax.walk(tree) if isinstance(one, (ast.Name, ast.Attribute)) and name)
    return [one for one in named if isinstance(one.ctx, ast.Load) and one.lineno >= line and dotted(one) == name]


def _statement_of(node: ast.AST, parents: dict[int, ast.AST]) -> ast.stmt | None:
    while not isinstance(node, ast.stmt) and id(node) in parents:
        node = parents[id(node)]
    return node if isinstance(node, ast.stmt) else None


def _is_read_by_caller(scope: Scope, search: _Search) -> bool:
    caller = scope.caller
    name = scope.function.rpartition(".")[2]
    if caller is None or not name:
        return False
    parents = _parents(caller.node)
    calls = [one for one in syntax.walk(caller.node) if isinstance(one, ast.Call)]
    mine = [one for one in calls if dotted(one.func).rpartition(".")[2] == name]
    pairs = ((one, _statement_of(one, parents)) for one in mine)
    return any(one is not None and _is_read(caller, call, one, search) for call, one in pairs)
