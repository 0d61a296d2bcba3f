"""Tensors of a module that its code moves to where they are used, or sets again before it reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.definitions import Function, definition, own_name
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Names in the code of a class that can move a tensor to where it is needed, or the other side to where the tensor is.
MOVES = frozenset(["to", "cuda", "cpu", "type_as", "new_tensor", "_apply", "item", "tolist", "numpy"])
_MOVING_METHODS = ("to", "_apply", "cuda")
_MAKES = "__init__"


def is_moved(kind: type[Any], key: str, places: Places | None) -> bool:
    """True if the class moves itself, or a method names an attribute and what moves tensors, or hands it to such."""
    functions = kinds.functions_of(kind)
    if any(one.__code__.co_name in _MOVING_METHODS for one in functions):
        return True
    readers = [one for one in functions if key in names_of(one.__code__) and one.__code__.co_name != _MAKES]
    if any(MOVES & names_of(one.__code__) for one in readers):
        return True
    return any(_hands_on(one, key, functions, places) for one in readers)


def is_set_first(kind: type[Any], key: str, places: Places | None) -> bool:
    """True if `forward` gives an attribute a value, whatever happens, before it reads it."""
    forward = next((one for one in kinds.functions_of(kind) if one.__code__.co_name == "forward"), None)
    node = _text_of(forward.__code__, places) if forward is not None else None
    if node is None or isinstance(node, ast.Lambda):
        return False
    path = f"{own_name(node)}.{key}"
    first = next((one for one in node.body if any(dotted(part) == path for part in _attributes(one))), None)
    if not isinstance(first, (ast.Assign, ast.AnnAssign)) or first.value is None:
        return False
    stored = any(dotted(one) == path for target in syntax.targets_of(first) for one in syntax.walk(target))
    return stored and not any(dotted(one) == path for one in _attributes(first.value))


def _attributes(node: ast.AST) -> Iterator[ast.Attribute]:
    return (one for one in syntax.walk(node) if isinstance(one, ast.Attribute))


def _text_of(code: CodeType, places: Places | None) -> Function | None:
    tree = places.tree_of(code) if places is not None else None
    return definition(tree, code) if tree is not None else None


def _hands_on(method: FunctionType, key: str, functions: list[FunctionType], places: Places | None) -> bool:
    """True if a call is given the attribute and a device, or is one of a function of the user that moves tensors."""
    node = _text_of(method.__code__, places)
    if node is None:
        return False
    aliases = _aliases(node, key)
    calls = [one for one in syntax.walk(node) if isinstance(one, ast.Call) and _is_given(one, key, aliases)]
    told = any(keyword.arg == "device" for one in calls for keyword in one.keywords)
    return told or any(_moves(one, method, functions) for one in calls)


def _aliases(node: ast.AST, key: str) -> set[str]:
    """Variables that are given what has the attribute in it, or are its elements."""
    given = [one for one in syntax.walk(node) if isinstance(one, ast.Assign)]
    found = {
        name for one in given if _has(one.value, key) for target in one.targets for name in syntax.names_in(target)
    }
    loops = (one for one in syntax.walk(node) if isinstance(one, (ast.For, ast.comprehension)) and _has(one.iter, key))
    return found.union(*(syntax.names_in(one.target) for one in loops))


def _has(node: ast.AST, key: str) -> bool:
    return any(one.attr == key for one in _attributes(node))


def _is_given(call: ast.Call, key: str, aliases: set[str]) -> bool:
    given = [*call.args, *(one.value for one in call.keywords)]
    return any(_has(one, key) or bool(syntax.names_in(one) & aliases) for one in given)


def _moves(call: ast.Call, method: FunctionType, functions: list[FunctionType]) -> bool:
    name = syntax.name_of(call.func)
    plain: Any = dict.get(method.__globals__, name)
    called = [plain] if isinstance(call.func, ast.Name) else [one for one in functions if one.__code__.co_name == name]
    codes = [one.__code__ for one in called if type(one) is FunctionType and not _is_of_torch(one)]
    return any(names_of(one) & (MOVES | {"device"}) for one in codes)


def _is_of_torch(function: FunctionType) -> bool:
    module: Any = function.__module__
    return type(module) is str and module.partition(".")[0] == "torch"
