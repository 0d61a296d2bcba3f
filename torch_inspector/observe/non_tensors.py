"""Arguments of a failing call that are arrays, lists or tables of pandas where torch wanted a tensor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ForeignFact
from torch_inspector.observe import kinds
from torch_inspector.observe.layers import walk_modules
from torch_inspector.observe.shapes import is_array, is_tensor, shape_of

if TYPE_CHECKING:
    from torch_inspector.observe.failing import Scope

# What torch says where it looks at its arguments, with the class of what it got.
_TOLD = re.compile(
    r"^\w+\(\): argument '\w+'(?: \(position \d+\))? must be Tensor, not ([\w.]+)$"
    r"|^conv\w+\(\) received an invalid combination of arguments - got \(([\w.]+),"
    # In older releases of torch, of functions that also take names of axes.
    r"|^(?:gather|index_select)\(\) received an invalid combination of arguments - got "
    r"\((?:(?:\w+=)?(?:Tensor|int), )*(?:\w+=)?([\w.]+)"
)
# What Python says where a layer asks its argument for its size: `x.size()`, which is a number of an array.
_ASKED = re.compile(r"^'([\w.]+)' object has no attribute '\w+'$|^'int' object is not callable$")
_KINDS = {"numpy.ndarray": "array", "list": "list", "tuple": "tuple", "DataFrame": "table", "Series": "table"}
# Elements of a list of tensors whose shapes are compared.
_FEW = 64


def is_meant(message: str) -> bool:
    """True for a message that may be about such an argument."""
    found = _TOLD.match(message) or _ASKED.match(message)
    return found is not None and all(name in _KINDS for name in found.groups() if name is not None)


def foreign(scope: Scope, expression: ast.expr, message: str) -> Iterator[tuple[ForeignFact, Any]]:
    """Each argument of the kind that the message names, with the object."""
    told = _TOLD.match(message)
    if not isinstance(expression, ast.Call):
        return
    of_torch = _is_of_torch(scope, expression.func, told=told is not None)
    of_module = told is not None and _is_of_library(scope.value(expression.func)[1])
    found = told or _ASKED.match(message)
    named = next((_KINDS[name] for name in (found.groups() if found else ()) if name is not None), "")
    for argument in (*expression.args, *(one.value for one in expression.keywords)):
        thing, whole = _argument(scope, argument)
        kind = _kind(thing)
        # A module of a library may want a list, and fail at another.
        of_data = kind in ("array", "table")
        if (of_torch or (of_module and of_data)) and (kind == named if named else of_data):
            yield _fact(ast.unparse(argument), kind, thing), thing if whole else None


def _is_of_torch(scope: Scope, func: ast.expr, *, told: bool) -> bool:
    """True for a layer, a loss or a function of torch: what is raised in there is about the arguments."""
    thing = scope.value(func)[1]
    if told and isinstance(func, ast.Attribute) and (is_tensor(thing) or scope.value(func.value)[1] is torch):
        return True  # `x.add`, `torch.relu`
    of_functional = type(thing) is FunctionType and thing.__module__ == "torch.nn.functional"
    return of_functional or (kinds.is_a(thing, torch.nn.Module) and _is_met_by_torch(thing))


def _is_met_by_torch(module: Any) -> bool:
    """True if a layer of torch meets the argument, and no other may have made something else of it before.

    In a row of layers that is the first which does anything; elsewhere the order is not known.
    """
    if _is_row(module):
        parts = [one for one in module._modules.values() if type(one) is not torch.nn.Identity]
        return not parts or _is_met_by_torch(parts[0])
    return all(kinds.module_of(type(one)).startswith("torch.nn.") for _, one in walk_modules(module))


def _is_of_library(module: Any) -> bool:
    """True for a module that is no container of torch's: what is in such a one is asked for itself."""
    own = kinds.module_of(type(module)).startswith("torch.nn.") or _is_row(module)
    return kinds.is_a(module, torch.nn.Module) and not own


def _is_row(module: Any) -> bool:
    """True for `nn.Sequential` and for classes made of it that keep its `forward`."""
    owner = next((one for one in kinds.mro_of(type(module)) if "forward" in kinds.class_fields(one)), None)
    return owner is torch.nn.Sequential


def _argument(scope: Scope, node: ast.expr) -> tuple[Any, bool]:
    """The object, or what it is a slice of."""
    thing = scope.value(node)[1]
    if thing is None and isinstance(node, ast.Subscript):
        return scope.value(node.value)[1], False
    return thing, True


def _kind(thing: Any) -> str:
    if is_array(thing):
        return "array"
    if kinds.is_one_of(thing, (list, tuple)):
        return "list" if type(thing) is list else "tuple"
    name, home = kinds.class_name(thing), kinds.module_of(type(thing))
    return _KINDS.get(name, "") if home.startswith("pandas.") else ""


def _fact(text: str, kind: str, thing: Any) -> ForeignFact:
    if kind == "array":
        return ForeignFact(text, kind, str(thing.dtype), axes=int(thing.ndim))
    if kind == "table":
        return ForeignFact(text, kind)
    return ForeignFact(text, kind, inside=_inside(thing), count=len(thing))


def _inside(listed: Any) -> str:
    """What a list or tuple has in it, told by the first; of tensors, by some."""
    first = listed[0] if listed else None
    if is_tensor(first):
        same = all(is_tensor(one) and shape_of(one) == shape_of(first) for one in listed[:_FEW])
        return "tensors of one shape" if same else "tensors"
    if is_array(first):
        return "arrays"
    while type(first) is list and first:
        first = first[0]
    return "numbers" if kinds.is_one_of(first, (int, float, bool)) else ""
