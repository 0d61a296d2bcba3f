"""Functions of the user's that only compute: no branch, no loop, nothing kept or shown. Rows can go in at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from math import prod
from types import FunctionType
from typing import Any

import torch
from torch import nn

from torch_inspector.facts import syntax
from torch_inspector.observe.definitions import definition
from torch_inspector.observe.drawing import globals_read, with_called
from torch_inspector.observe.expressions import tensor_or_shape
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.own_lengths import have_own_lengths
from torch_inspector.observe.pairs import TreeOf
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns import last_name

_DEPTH = 2
# Tensors of more numbers that each call needs whole keep torch busy.
_WHOLE = 4_096
_PLAIN = frozenset(["abs", "float", "len", "pow", "round"])
_SPACES = frozenset(["torch", "F", "functional", "math", "nn"])
_METHODS = frozenset(dir(torch.Tensor))
# What takes a number out of a tensor may decide by it; and results may have a length for each row.
_DECIDES = frozenset(
    ["item", "tolist", "numpy", "any", "all", "nonzero", "unique", "unique_consecutive", "bincount", "histc",
     "combinations", "argwhere", "where", "masked_select", "histogram", "repeat_interleave", "is_nonzero", "allclose",
     "equal", "cartesian_prod"]
)  # fmt: skip
_OTHER = (
    ast.NamedExpr, ast.IfExp, ast.BoolOp, ast.Await, ast.Yield, ast.YieldFrom, ast.JoinedStr, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Starred,
)  # fmt: skip


def is_straight(function: Any, tree_of: TreeOf, has_effect: Callable[[str], bool], depth: int = 0) -> bool:
    """True for such a function.

    Args:
        function: Anything.
        tree_of: Finds the parsed cell that a function comes from.
        has_effect: True for the names of what draws, learns or stores.
        depth: How many functions have called it.
    """
    if type(function) is not FunctionType or depth > _DEPTH or function.__code__.co_freevars:
        return False
    tree = tree_of(function.__code__)
    found = definition(tree, function.__code__) if tree is not None else None
    nodes = list(_nodes(found)) if isinstance(found, (ast.FunctionDef, ast.Lambda)) else []
    if not nodes or any(isinstance(one, _OTHER) for one in nodes) or have_own_lengths(nodes):
        return False
    known, own = function.__globals__, {one.targets[0].id for one in nodes if _is_lambda(one)}  # type: ignore[attr-defined]
    calls = [one.func for one in nodes if isinstance(one, ast.Call) and dotted(one.func) not in own]
    large = any(_is_large(dict.get(known, one.id)) for one in nodes if isinstance(one, ast.Name))
    if large or any(isinstance(one, ast.Subscript) and _may_mask(one.slice, known) for one in nodes):
        return False
    if any(has_effect(last_name(one)) or last_name(one).endswith("_") for one in calls):
        return False
    return all(
        _computes(one, known) or is_straight(dict.get(known, dotted(one)), tree_of, has_effect, depth + 1)
        for one in calls
    )


def reads_changed(function: Any, parts: list[ast.AST], value_of: Callable[[ast.expr], Any]) -> bool:
    """True if a function reads variables of the notebook that a loop gives values, appends to or writes in.

    Args:
        function: Anything.
        parts: The nodes of the loop.
        value_of: Gives what an expression in the loop stands for.
    """
    if type(function) is not FunctionType:
        return False
    names = {syntax.root_of(one) for part in parts for one in _changed(part)}
    values = [value for name in names if name and _holds(value := value_of(ast.Name(name, ast.Load())))]
    read = (pair for one in with_called([function]) for pair in globals_read(one))
    return any(name in names or any(value is one for one in values) for name, value in read)


def _changed(part: ast.AST) -> Iterator[ast.expr]:
    """What a node of a loop gives a value, appends to or writes in."""
    if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
        yield part
    elif isinstance(part, ast.Call):
        yield from (one.value for one in part.keywords if one.arg == "out")
        if isinstance(part.func, ast.Attribute) and part.func.attr == "append":
            yield part.func.value


def _holds(value: Any) -> bool:
    return is_one_of(value, (list, dict)) or tensor_or_shape(value)


def _may_mask(index: ast.expr, known: dict[str, Any]) -> bool:
    """True for `row[row > 0]` and `row[kept]`: how many numbers that gives is up to each row."""
    return any(
        not isinstance(one, (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.expr_context))
        and type(dict.get(known, getattr(one, "id", ""))) is not int
        for one in syntax.walk(index)
    )


def _nodes(function: ast.FunctionDef | ast.Lambda) -> Iterator[ast.AST]:
    """All that it consists of, if that is assignments to its own names and then what it returns; else nothing."""
    if isinstance(function, ast.Lambda):
        yield from syntax.walk(function.body)
        return
    *before, last = function.body
    plain = all(_is_plain(one) for one in before) and isinstance(last, ast.Return) and last.value is not None
    for one in function.body if plain and not function.decorator_list else ():
        yield from syntax.walk(one)


def _is_plain(one: ast.stmt) -> bool:
    if isinstance(one, ast.Expr):
        return isinstance(one.value, ast.Constant)
    targets = one.targets if isinstance(one, ast.Assign) else []
    names = [name for target in targets for name in getattr(target, "elts", [target])]
    return bool(names) and all(isinstance(name, ast.Name) for name in names)


def _is_lambda(one: ast.AST) -> bool:
    """True for `area = lambda box: …` within the function."""
    return isinstance(one, ast.Assign) and isinstance(one.value, ast.Lambda) and isinstance(one.targets[0], ast.Name)


def _computes(callee: ast.expr, known: dict[str, Any]) -> bool:
    """True for operations of torch and its tensors, and for functions of Python that only compute."""
    name = last_name(callee)
    if name in _DECIDES:
        return False
    if not isinstance(callee, ast.Attribute):
        return name in _PLAIN and name not in known
    if dotted(callee).partition(".")[0] in _SPACES:
        return True
    owner = dict.get(known, dotted(callee.value).partition(".")[0])
    return name in _METHODS and not is_a(owner, nn.Module)


def _is_large(value: Any) -> bool:
    return tensor_or_shape(value) and prod(shape_of(value) or ()) > _WHOLE
