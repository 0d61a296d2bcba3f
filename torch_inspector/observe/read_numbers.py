"""Whether the text reads a result as an amount: a mean or a distance, and no code that only goes round."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.handed_on import (
    CASTS,
    SEVERAL,
    Taker,
    adds_up,
    hands_on,
    is_another,
    key_in,
    loads,
    takers,
)
from torch_inspector.observe.shapes import is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.wheels import is_wheel

# What a wrong number makes another wrong number of: other types, amounts, bounds.
_READS = frozenset(
    ["float", "double", "half", "bfloat16", "mean", "std", "var", "norm", "pow", "square", "sqrt", "abs",
     "absolute", "clamp", "clip", "clamp_", "clip_", "div", "true_divide", "max", "min", "amax", "amin",
     "mse_loss", "l1_loss"]
)  # fmt: skip
# The sum of products is one; that of sums may be a checksum.
_OF_PRODUCTS = _READS | {"sum"}
# A bound for what is larger; differences of bytes in a row may be of counters that go round, those of pictures are not.
_BOUND = ">"
_OF_PICTURES = _READS | {_BOUND}
_PICTURE, _SIDES = 8, 2
# A bound of half the way round tells on which side a number is, which is right for what goes round.
_HALF = 127
_TYPES = frozenset([*CASTS, "float", "double", "half", "bfloat16"])
# Whole numbers of more bits may be the places of a table, or the rest modulo 256: they hand on what is meant.
_WIDER = ("float", "double", "half")
_COUNTS = frozenset(["histc", "histogram", "bincount", "one_hot", "unique"])
# An average of a few; a larger divisor may be there for the upper bits.
_FEW = 10
_DEPTH = 4
# What is made without a type has this one.
_FLOATS = frozenset(["torch.ones", "torch.zeros", "torch.rand", "torch.randn", "torch.empty"])
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]


def reads_of(operation: str, shapes: tuple[Shape, ...] = ()) -> frozenset[str]:
    """Functions and methods that read the result of an operation, on tensors of some shapes, as an amount."""
    if operation in ("mul", "pow"):
        return _OF_PRODUCTS
    pictures = len(shapes) == _SIDES and all(len(one) > 1 and min(one[-2:]) >= _PICTURE for one in shapes)
    return _OF_PICTURES if operation == "sub" and pictures else _READS


class _Search(NamedTuple):
    """What is looked for, and where."""

    reads: frozenset[str]
    depth: int
    seen: set[tuple[int, Taker]]
    """Variables that are followed already, each with its scope: every one is looked at once."""


class _Way(NamedTuple):
    """How far a statement hands a result on by itself."""

    end: ast.AST
    """The outermost expression that is still the result."""
    key: object
    """Under which key or at which place of it, if that is a container."""
    is_sum: bool
    is_read: bool = False


def is_read_as_number(scope: Scope, node: ast.AST, statement: ast.stmt, reads: frozenset[str] = _READS) -> bool:
    """True if the result, under a name or not, is converted, averaged, divided or bounded."""
    return _is_read(scope, node, statement, _Search(reads, 0, set()))


def _is_read(scope: Scope, node: ast.AST, statement: ast.stmt, search: _Search, key: object = None) -> bool:
    way = _way(scope, node, statement, search, key)
    if way is None or way.is_read or search.depth >= _DEPTH:
        return way is not None and way.is_read
    parents = syntax.parents(scope.node)
    deeper = search._replace(depth=search.depth + 1, reads=frozenset() if way.is_sum else search.reads)
    given = takers(parents.get(id(way.end)), statement, way.end, node, way.key)
    if any(_is_taker_read(scope, taker, statement.lineno, deeper) for taker in given):
        return True
    return isinstance(statement, ast.Return) and _is_read_by_caller(scope, deeper, way.key)


def _is_taker_read(scope: Scope, taker: Taker, line: int, search: _Search) -> bool:
    if not taker.name or (id(scope.node), taker) in search.seen:
        return False
    search.seen.add((id(scope.node), taker))
    parents = syntax.parents(scope.node)
    pairs = ((use, syntax.statement_of(use, parents)) for use in loads(scope.node, taker.name, line))
    return any(one is not None and _is_read(scope, use, one, search, taker.key) for use, one in pairs)


def _way(scope: Scope, node: ast.AST, statement: ast.stmt, search: _Search, key: object) -> _Way | None:
    """Follows a result through the expressions around it; None where it is one of several of which another is taken."""
    parents, here, is_sum = syntax.parents(scope.node), node, not search.reads
    while (parent := parents.get(id(here))) is not None and here is not statement:
        if _reads(scope, parent, here, frozenset() if is_sum else search.reads):
            return _Way(
                here, key, is_sum, not _is_counted(parents, parent) and not is_wheel(scope.node, parent, parents)
            )
        added = adds_up(parent, here, is_sum=is_sum)
        if not isinstance(parent, ast.expr) or not (hands_on(parent, here) or added):
            break
        if is_another(parent, key) or (key is not None and isinstance(parent, SEVERAL)):
            return None
        key = _key_after(parent, here, key)
        here, is_sum = parent, is_sum or added
    return _Way(here, key, is_sum)


def _key_after(parent: ast.expr, use: ast.AST, key: object) -> object:
    if isinstance(parent, SEVERAL):
        return key_in(parent, use)
    return None if isinstance(parent, ast.Subscript) else key


def _reads(scope: Scope, parent: ast.AST, use: ast.AST, reads: frozenset[str]) -> bool:
    if isinstance(parent, ast.BinOp):
        squared = isinstance(parent.op, ast.Pow) and parent.left is use
        scaled = any(isinstance(one, ast.Constant) and type(one.value) is float for one in (parent.left, parent.right))
        return _divides(parent, use) or (bool(reads) and (squared or scaled))
    if isinstance(parent, ast.Compare):
        return _BOUND in reads and _bounds(parent, use)
    if isinstance(parent, ast.Call) and use in parent.args:
        return dotted(parent.func).rpartition(".")[2] in reads
    if isinstance(parent, ast.Call):
        return bool(reads) and isinstance(use, ast.Attribute) and use.attr in CASTS and _widens(scope, parent)
    return isinstance(parent, ast.Attribute) and parent.attr in reads


def _bounds(parent: ast.Compare, use: ast.AST) -> bool:
    """True for `d > 30` and `30 < d`."""
    if len(parent.ops) != 1:
        return False
    first = parent.left is use
    other = parent.comparators[0] if first else parent.left
    larger = isinstance(parent.ops[0], (ast.Gt, ast.GtE) if first else (ast.Lt, ast.LtE))
    return larger and isinstance(other, ast.Constant) and type(other.value) is int and 0 < other.value < _HALF


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


def _widens(scope: Scope, call: ast.Call) -> bool:
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
    named = any(word in ast.unparse(one).lower() for one in given for word in _WIDER)
    return named or any(_is_float(scope, one) for one in given)


def _is_float(scope: Scope, other: ast.expr) -> bool:
    """True for a type of floating point numbers, and for a tensor of some, whose type is taken over."""
    value = scope.names.value(other)
    if is_tensor(value) or type(value) is torch.dtype:
        return bool((_dtype_of(value) if is_tensor(value) else value).is_floating_point)
    made = isinstance(other, ast.Call) and not any(one.arg == "dtype" for one in other.keywords)
    return made and isinstance(other, ast.Call) and dotted(other.func) in _FLOATS


def _is_read_by_caller(scope: Scope, search: _Search, key: object) -> bool:
    caller = scope.caller
    name = scope.function.rpartition(".")[2]
    if caller is None or not name:
        return False
    parents = syntax.parents(caller.node)
    calls = [one for one in syntax.walk(caller.node) if isinstance(one, ast.Call)]
    mine = [one for one in calls if dotted(one.func).rpartition(".")[2] == name]
    pairs = ((one, syntax.statement_of(one, parents)) for one in mine)
    return any(one is not None and _is_read(caller, call, one, search, key) for call, one in pairs)
