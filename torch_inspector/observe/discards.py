"""Calls such as `x.to(device)` whose result nobody keeps, and what `x` is after the cell."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import Cell, DiscardFact, Place, syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.given_back_as import given_back_as
from torch_inspector.observe.measuring import is_measured, is_timed
from torch_inspector.observe.source import dotted

MAKES = {
    "to": None,
    "type": None,
    "cuda": "cuda",
    "cpu": "cpu",
    "float": "float32",
    "half": "float16",
    "double": "float64",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
}
"""Methods that give a new tensor, with what they make of it; None where the arguments say so."""
_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu", "meta")
# Used with a name, one of these says that it stands for a module.
_OF_MODULES = frozenset(
    ("parameters", "train", "eval", "state_dict", "load_state_dict", "zero_grad", "named_parameters", "modules")
)


class _Call(NamedTuple):
    """One such statement."""

    line: int
    function: str
    owner: ast.expr
    method: str
    argument: ast.expr | None
    text: str
    fed: bool
    """True if the function hands the same name on or computes with it, and never calls it."""
    shown: bool
    over: ast.expr | None = None
    """What the innermost loop goes over that gives the name its values."""


def discard_facts(cell: Cell, names: Mapping[str, Any]) -> tuple[DiscardFact, ...]:
    """What the text of a cell throws away, with what the tensor is now."""
    if not any(f".{method}(" in cell.code for method in MAKES):
        return ()
    tree = syntax.parse(cell.code)
    return tuple(_fact(call, cell, names, tree) for call in _calls(tree)) if tree is not None else ()


def _fact(call: _Call, cell: Cell, names: Mapping[str, Any], tree: ast.Module) -> DiscardFact:
    thing = _resolve(call.owner, names) if not call.function else _given_back(call, names, tree)
    tensor = thing if thing is not None and kinds.is_a(thing, torch.Tensor) else None
    return DiscardFact(
        place=Place(cell.number, call.line + cell.line_offset, call.function),
        path=ast.unparse(call.owner),
        text=call.text,
        wanted=_wanted(call, names),
        device=str(tensor.device) if tensor is not None else "",
        dtype=str(tensor.dtype).removeprefix("torch.") if tensor is not None else "",
        is_tensor=tensor is not None,
        fed=call.fed,
        shown=call.shown,
        over=_kind_of(call.over, names) if not call.function else "",
    )


def _given_back(call: _Call, names: Mapping[str, Any], tree: ast.Module) -> Any:
    """The tensor that a function gave back as it was, though it was to have numbers of another type."""
    wanted = MAKES[call.method] or ""
    if call.argument is not None and dotted(call.argument).startswith("torch."):
        wanted = dotted(call.argument).removeprefix("torch.")
    is_dtype = type(kinds.fields_of(torch).get(wanted)) is torch.dtype
    thing = given_back_as(tree, dotted(call.owner), call.line, names) if is_dtype else None
    wrong = thing is not None and kinds.is_a(thing, torch.Tensor) and str(thing.dtype).removeprefix("torch.") != wanted
    return thing if wrong else None


def _kind_of(over: ast.expr | None, names: Mapping[str, Any]) -> str:
    """Whether a loop goes over a list or a tuple, also by `enumerate`."""
    if isinstance(over, ast.Call) and dotted(over.func) == "enumerate" and over.args:
        over = over.args[0]
    kind = type(_resolve(over, names)) if over is not None else None
    return "list" if kind is list else "tuple" if kind is tuple else ""


@lru_cache(maxsize=32)
def _calls(tree: ast.Module) -> tuple[_Call, ...]:
    found: list[_Call] = []
    stack: list[tuple[ast.AST, ast.AST, tuple[ast.For, ...]]] = [(tree, tree, ())]
    while stack:
        node, scope, loops = stack.pop()
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in MAKES:
            made = _call(call, call.func, scope, shown=bool(tree.body) and node is tree.body[-1])
            found.append(made._replace(over=_gone_through(loops, dotted(call.func.value))))
        if is_measured(node):
            continue
        inner = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        around = (*loops, node) if isinstance(node, ast.For) else loops
        stack.extend((child, inner, around) for child in syntax.children(node) if not isinstance(child, ast.expr))
    return tuple(
        sorted((one for one in found if not is_timed(tree, one.line, dotted(one.owner))), key=lambda o: o.line)
    )


def _gone_through(loops: tuple[ast.For, ...], name: str) -> ast.expr | None:
    bound = (loop for loop in reversed(loops) if any(dotted(one) == name for one in syntax.walk(loop.target) if name))
    return next((loop.iter for loop in bound), None)


def _call(call: ast.Call, func: ast.Attribute, scope: ast.AST, *, shown: bool) -> _Call:
    name = scope.name if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
    argument = call.args[0] if call.args else next((k.value for k in call.keywords), None)
    fed = bool(name) and dotted(func.value) in _fed(scope)
    return _Call(call.lineno, name, func.value, func.attr, argument, ast.unparse(call), fed, shown)


@lru_cache(maxsize=64)
def _fed(scope: ast.AST) -> frozenset[str]:
    """Names that a function uses as one uses tensors: computes with them or hands them on, and never calls them."""
    fed, called = set[str](), set[str]()
    for node in syntax.walk(scope):
        if isinstance(node, ast.Call):
            called.add(dotted(node.func))
            fed.update(map(dotted, node.args))
        fed.update(map(dotted, _computed_with(node)))
        if isinstance(node, ast.Attribute) and node.attr in _OF_MODULES:
            called.add(dotted(node.value))
    return frozenset(fed - called - {""})


def _computed_with(node: ast.AST) -> tuple[ast.expr, ...]:
    """Operands of an expression that no module can be in."""
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    if isinstance(node, (ast.UnaryOp, ast.AugAssign)) and not isinstance(node.op, ast.Not):
        return (node.operand if isinstance(node, ast.UnaryOp) else node.value,)
    return ()


def _resolve(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """The object that a name, an attribute or an entry by a plain key or by a name's value stands for; else None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        fields = kinds.fields_of(_resolve(node.value, names))
        for place in (fields, fields.get("_parameters"), fields.get("_buffers"), fields.get("_modules")):
            if kinds.is_registry(place) and node.attr in place:
                return place[node.attr]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Name)):
        key = names.get(node.slice.id) if isinstance(node.slice, ast.Name) else node.slice.value
        return _entry(_resolve(node.value, names), key)
    return None


def _entry(holder: Any, key: Any) -> Any:
    if type(holder) is dict and kinds.is_one_of(key, (str, int)):
        return holder.get(key)
    if kinds.is_one_of(holder, (list, tuple)) and type(key) is int and -len(holder) <= key < len(holder):
        return holder[key]
    return None


def _wanted(call: _Call, names: Mapping[str, Any]) -> str:
    """The device or type of numbers that was asked for; empty where that is not known."""
    made = MAKES[call.method]
    if made is not None or call.argument is None:
        return made or ""
    value = call.argument.value if isinstance(call.argument, ast.Constant) else _resolve(call.argument, names)
    if dotted(call.argument).startswith("torch."):
        value = kinds.fields_of(torch).get(dotted(call.argument).removeprefix("torch."))
    return said(value)


def said(value: Any) -> str:
    """A device or a type of numbers as text; empty for anything else."""
    if kinds.is_one_of(value, (torch.device, torch.dtype)):
        return str(value).removeprefix("torch.")
    return str(value) if type(value) is str and asks_for_device(value) else ""


def asks_for_device(wanted: str) -> bool:
    """True for the name of a device, with or without its number."""
    return wanted.partition(":")[0] in _DEVICE_TYPES
