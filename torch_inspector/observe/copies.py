"""A value that is put into a copy: `x[mask][0] = v` changes what indexing has made, and not `x`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.kinds import fields_of, is_a, module_of
from torch_inspector.observe.reach import is_leaf
from torch_inspector.observe.rows import (
    has_tensor_method,
    is_given_rows,
    is_given_tensor,
    makes_mask,
    makes_rows,
)
from torch_inspector.observe.shapes import UNKNOWN, is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.stored_later import is_stored_later

_FILLS = frozenset(
    ["fill_", "zero_", "add_", "sub_", "mul_", "div_", "copy_", "clamp_", "normal_", "uniform_", "masked_fill_",
     "index_fill_", "scatter_", "neg_", "abs_", "exp_", "sigmoid_", "relu_", "pow_", "random_", "bernoulli_",
     "exponential_", "clamp_min_", "clamp_max_", "sqrt_", "log_", "tanh_", "round_", "floor_", "ceil_", "index_copy_",
     "index_add_", "masked_scatter_", "scatter_add_", "addcmul_", "lerp_"]
)  # fmt: skip
# Modules whose functions with such a name change what they are given: `nn.init.uniform_(w[rows])`, `torch.relu_(x[m])`.
_CHANGING = ("torch", "torch.nn.init", "torch.nn.functional")
_VIEWS = frozenset(["view", "squeeze", "unsqueeze", "t", "transpose", "permute", "detach"])
# What makes one number of many.
_COUNTS = frozenset(["len", "item", "sum", "mean", "any", "all", "max", "min", "numel", "dim", "size"])
_SHOWN = frozenset(["data", "T", "mT"])


def lost(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """An assignment to, or a change in place of, what a mask, a list or a tensor of numbers has picked out."""
    for inner in _written(scope, node, statement):
        owner = scope.names.value(inner.value)
        sure = tensor_or_shape(owner)
        told = sure or is_given_tensor(scope, inner.value) or has_tensor_method(scope, inner.value)
        masks = _is_mask(inner.slice) and (told or _is_of_elements(scope, inner.slice, dotted(inner.value)))
        masks = masks or _is_named_mask(scope, inner.slice, "" if told else dotted(inner.value))
        if not sure and (owner is not UNKNOWN or not dotted(inner.value)):
            continue
        if not sure and not masks and not _is_written_rows(scope, inner, node):
            continue
        late = sure and not masks and is_stored_later(scope, inner.slice, statement)
        if masks or not sure or _copies(scope, inner.slice, known=not late):
            shape = shape_of(owner)
            names, leaf = (ast.unparse(inner.value), _index_text(inner.slice)), _is_bare_leaf(scope, owner, node)
            more = {"shapes": (shape,) if shape else (), "detail": "leaf" if leaf else ""}
            yield scope.fact("lost", node, statement, names=names, sure=sure, **more)
            return  # what is further out is a part of the copy


def _is_written_rows(scope: Scope, inner: ast.Subscript, node: ast.AST) -> bool:
    """True if what is not there can only be a tensor of which rows are picked: of two axes, or made as a tensor."""
    if not scope.function or not is_given_rows(scope, inner.slice):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    axes = [one.slice for one in targets if isinstance(one, ast.Subscript)]
    return any(isinstance(one, ast.Tuple) for one in axes) or is_given_tensor(scope, inner.value)


def _index_text(index: ast.expr) -> str:
    """`idx, :` as it stands between the brackets."""
    if isinstance(index, ast.Tuple) and index.elts:
        return ", ".join(map(ast.unparse, index.elts)) + ("," if len(index.elts) == 1 else "")
    return ast.unparse(index)


def _written(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ast.Subscript]:
    """The inner indexes of `x[a][b] = …`, `x[a][b] += …`, and those of `x[a].fill_(…)` whose result nobody keeps.

    The innermost one comes first.
    """
    found: list[ast.expr | None] = []
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found += [one.value for one in targets if isinstance(one, ast.Subscript)]
    elif isinstance(node, ast.Call) and isinstance(statement, ast.Expr) and statement.value is node:
        found.append(_changed(scope, node))
    for one in found:
        yield from reversed([*_indexes(one)])


def _changed(scope: Scope, call: ast.Call) -> ast.expr | None:
    """What a call changes in place: `x` of `x.fill_(0)`, `nn.init.normal_(x)` and `torch.add(a, b, out=x)`."""
    out = next((one.value for one in call.keywords if one.arg == "out"), None)
    if out is not None or not isinstance(call.func, (ast.Attribute, ast.Name)):
        return out
    if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS and not _is_space(scope, call.func.value):
        return call.func.value
    function = scope.names.value(call.func) if dotted(call.func).endswith("_") else None
    name = dotted(call.func).rpartition(".")[2]
    changes = any(function is fields_of(sys.modules[one]).get(name, UNKNOWN) for one in _CHANGING)
    return call.args[0] if changes and call.args else None


def _is_space(scope: Scope, owner: ast.expr) -> bool:
    return is_a(scope.names.value(owner), ModuleType)


def _indexes(expression: ast.expr | None) -> Iterator[ast.Subscript]:
    """The indexes of `x[a][b]`, outermost first, past what only shows the same numbers."""
    here = expression
    while here is not None:
        if isinstance(here, ast.Subscript):
            yield here
            here = here.value
        elif isinstance(here, ast.Attribute) and here.attr in _SHOWN:
            here = here.value
        else:
            shown = isinstance(here, ast.Call) and isinstance(here.func, ast.Attribute) and here.func.attr in _VIEWS
            here = here.func.value if shown else None  # type: ignore[attr-defined]


def _is_bare_leaf(scope: Scope, owner: Any, node: ast.AST) -> bool:
    """True for a leaf that learns, outside of any `no_grad`: torch does not let it be changed there."""
    if not is_tensor(owner) or not as_torch.requires_grad(owner) or not is_leaf(owner):
        return False
    parents, here = syntax.parents(scope.node), node
    while (parent := parents.get(id(here))) is not None:
        if isinstance(parent, ast.With) and any("no_grad" in ast.unparse(one) for one in parent.items):
            return False
        here = parent
    return not any("no_grad" in ast.unparse(one) for one in getattr(scope.node, "decorator_list", ()))


def _is_mask(index: ast.expr) -> bool:
    """True for an index that can only be a mask or a list: `x > 0`, `~mask`, `[0, 2]`."""
    if isinstance(index, ast.Tuple):
        return any(map(_is_mask, index.elts))
    if isinstance(index, ast.Call):
        return makes_rows(index) or makes_mask(index)
    inverted = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert)
    return inverted or isinstance(index, (ast.Compare, ast.List))


def _is_of_elements(scope: Scope, index: ast.expr, owner: str) -> bool:
    """True unless a comparison may be a plain truth, by which a dictionary has its lists: `cells[n > 2][0] = 1`."""
    if isinstance(index, ast.Tuple):
        return any(_is_mask(part) and _is_of_elements(scope, part, owner) for part in index.elts)
    if not isinstance(index, (ast.Compare, ast.UnaryOp)):
        return True
    calls = (one for one in syntax.walk(index) if isinstance(one, ast.Call) and syntax.last_part(one.func) in _COUNTS)
    counted = {id(one) for call in calls for one in syntax.walk(call)}
    parts = [one for one in syntax.walk(index) if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in counted]
    return any(dotted(one) == owner or tensor_or_shape(scope.names.value(one)) for one in parts)


def _is_named_mask(scope: Scope, index: ast.expr, owner: str) -> bool:
    """True for a name of the function that only comparisons give a value, of `owner` itself: `keep = ids > 5`."""
    if not isinstance(index, ast.Name) or not scope.function or index.id in scope.arguments:
        return False
    given = [value for value, where in scope.given(index.id) if where is scope]
    stores = stores_in(scope.node).get(index.id, ())
    told = bool(given) and len(given) == len(stores) and all(_compares(value) for value in given)
    return told and all(not owner or owner in {dotted(part) for part in syntax.walk(value)} for value in given)


def _compares(value: ast.expr) -> bool:
    """True for an expression that can only be a mask of elements: `a > 0`, `~(a == b)`, `(a > 0) & (a < 9)`."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Invert):
        return True
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.BitAnd, ast.BitOr)):
        return _compares(value.left) and _compares(value.right)
    if isinstance(value, ast.Call):
        return makes_mask(value)
    return isinstance(value, ast.Compare) and not isinstance(value.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))


def _copies(scope: Scope, index: ast.expr, *, known: bool) -> bool:
    """True if indexing a tensor with this makes a copy."""
    if isinstance(index, ast.Tuple):
        return any(_copies(scope, part, known=known) for part in index.elts)
    if _is_mask(index) or (known and is_given_rows(scope, index)):
        return True
    given = scope.arguments.get(index.id) if known and isinstance(index, ast.Name) else None
    if given is not None and (isinstance(given, ast.List) or _compares(given)):
        return ast.unparse(index) not in stores_in(scope.node)
    value: Any = scope.names.value(index) if known else UNKNOWN
    if type(value) is list:
        return True
    if not is_tensor(value) or module_of(type(value)).split(".")[0] != "torch":
        return False
    picks = value.dtype in (torch.bool, torch.uint8, torch.int64, torch.int32, torch.int16, torch.int8)
    return bool(picks and (value.dim() > 0 or value.dtype is torch.bool))
