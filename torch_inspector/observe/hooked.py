"""What a hook knows besides its arguments: closure, defaults, bound object, globals; and whether it collects."""

from __future__ import annotations

import dis
import functools
from collections.abc import Container, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from torch import Tensor, nn

from torch_inspector.observe import kinds, layers, private, sorts
from torch_inspector.observe.paths import attributes_of

# Functions in functions that are looked through.
_DEPTH = 3
_APPENDS = frozenset(("append", "appendleft", "extend", "add", "insert", "put"))
_STORES = frozenset(("update", "setdefault"))
_CONTAINERS = ("mapping", "list", "deque", "set")
_ATTRIBUTES = 40
_REGISTRIES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Root(NamedTuple):
    """A container that a hook leads to. Holds it: drop it at once."""

    label: str
    """What the hook calls it: `acts`, `self.acts`."""
    value: Any
    owner: Any = None
    """The object whose attribute it is."""
    attribute: str = ""


def roots_of(function: Any) -> Iterator[Root]:
    """The containers that a hook knows, each once."""
    seen: set[int] = set()
    for label, value in _known(function, _DEPTH):
        for root in _containers(label, value):
            if id(root.value) not in seen:
                seen.add(id(root.value))
                yield root


def tensors_of(function: Any) -> Iterator[Tensor]:
    """The tensors that a hook knows: those around it, and those in the fields of its objects."""
    for _, value in _known(function, _DEPTH):
        parts = [value]
        if sorts.sort_of(type(value)) == "object":
            parts = [part for _, part in attributes_of(value)[:_ATTRIBUTES]]
        yield from (one for one in parts if kinds.is_a(one, Tensor))


def hook_with(module: Any, address: int, storages: Container[int] = ()) -> str:
    """The registry, of a module or a layer of it, whose hooks know an object or memory; empty if there is none.

    Args:
        module: Whatever it is; only modules and tensors have hooks.
        address: Of the object.
        storages: Those of its tensors that are looked for.
    """
    if kinds.is_one_of(module, (Tensor, nn.Parameter)):
        return "tensor hooks" if _one_knows(module._backward_hooks, address, storages) else ""
    for _, layer in layers.walk_modules(module) if sorts.sort_of(type(module)) == "module" else ():
        fields = kinds.fields_of(layer)
        for kind in _REGISTRIES:
            if _one_knows(fields.get(kind), address, storages):
                return kind
        weights = dict.values(fields["_parameters"]) if kinds.is_registry(fields.get("_parameters")) else ()
        if any(_one_knows(one._backward_hooks, address, storages) for one in weights if type(one) is nn.Parameter):
            return "parameter hooks"
    return ""


def _one_knows(hooks: Any, address: int, storages: Container[int]) -> bool:
    functions = list(dict.values(hooks))[:_ATTRIBUTES] if hooks and kinds.is_a(hooks, dict) else []
    known = (value for one in functions for _, value in _known(one, _DEPTH))
    return any(id(value) == address or _has_memory(value, storages) for value in known)


def _has_memory(value: Any, storages: Container[int]) -> bool:
    storage = private.storage_of(value) if kinds.is_a(value, Tensor) else None
    return storage is not None and storage[0] in storages


def _containers(label: str, value: Any) -> Iterator[Root]:
    sort = sorts.sort_of(type(value))
    if sort in _CONTAINERS:
        yield Root(label, value)
    elif sort in ("object", "module"):
        for name, part in attributes_of(value)[:_ATTRIBUTES]:
            own = name not in ("_parameters", "_buffers", "_modules") and "_hooks" not in name
            if own and sorts.sort_of(type(part)) in _CONTAINERS:
                yield Root(f"{label}.{name}", part, value, name)


def _known(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Everything a callable leads to, with what it calls it."""
    kind = type(function)
    if not depth:
        return
    if kind is FunctionType:
        for label, value in _of_function(function):
            yield label, value
            if kinds.is_one_of(value, (FunctionType, MethodType, functools.partial)):
                yield from _known(value, depth - 1)
    elif kind is MethodType:
        yield "self", function.__self__
        yield from _known(function.__func__, depth - 1)
    elif kind is functools.partial:
        yield from _known(function.func, depth - 1)
        yield from ((f"argument {n}", value) for n, value in enumerate(function.args, 1))
        yield from ((str(name), value) for name, value in function.keywords.items())
    elif sorts.sort_of(kind) == "object":
        yield "self", function
        yield from _known(_method(function, "__call__"), depth - 1)


def _of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    code = function.__code__
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][len(code.co_varnames[: code.co_argcount]) - len(defaults) :]
    yield from zip(names, defaults, strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    for one in _with_inner(code):
        yield from ((n, function.__globals__[n]) for n in one.co_names if n in function.__globals__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those written in it."""
    yield code
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _with_inner(part)


def _method(thing: Any, name: str) -> Any:
    fields = (kinds.class_fields(base) for base in kinds.mro_of(type(thing)))
    return next((own[name] for own in fields if name in own), None)


def function_name(function: Any) -> str:
    """The name of a hook as its code has it; the class for an object that can be called."""
    kind = type(function)
    if kind is FunctionType:
        return str(function.__code__.co_name)
    if kind is MethodType:
        return function_name(function.__func__)
    if kind is functools.partial:
        return function_name(function.func)
    return kinds.class_name(function)


def lengthens(functions: list[Any]) -> tuple[bool, bool]:
    """Whether the code of some hooks, or what they call, appends to anything, and whether it sets elements."""
    codes = {id(code): code for function in functions for code in _codes(function, _DEPTH)}.values()
    appends = any(not _APPENDS.isdisjoint(code.co_names) or _adds_in_place(code) for code in codes)
    return appends, any(not _STORES.isdisjoint(code.co_names) or _has(code, "STORE_SUBSCR") for code in codes)


def _adds_in_place(code: CodeType) -> bool:
    return any(one.argrepr == "+=" or one.opname == "INPLACE_ADD" for one in dis.get_instructions(code))


def _has(code: CodeType, name: str) -> bool:
    return any(one.opname == name for one in dis.get_instructions(code))


def _codes(function: Any, depth: int) -> Iterator[CodeType]:
    kind = type(function)
    if not depth:
        return
    if kind is FunctionType:
        yield from _with_inner(function.__code__)
        for _, value in _of_function(function):
            if kinds.is_one_of(value, (FunctionType, MethodType)):
                yield from _codes(value, depth - 1)
            elif sorts.sort_of(type(value)) in ("object", "module"):
                yield from _of_methods(value, function.__code__, depth)
    elif kind is MethodType:
        yield from _codes(function.__func__, depth)
        yield from _of_methods(function.__self__, getattr(function.__func__, "__code__", None), depth)
    elif kind is functools.partial:
        yield from _codes(function.func, depth - 1)
    elif sorts.sort_of(kind) == "object":
        call = _method(function, "__call__")
        yield from _codes(call, depth)
        yield from _of_methods(function, getattr(call, "__code__", None), depth)


def _of_methods(thing: Any, code: CodeType | None, depth: int) -> Iterator[CodeType]:
    """The code of those methods of an object whose names are in some code."""
    for name in code.co_names if code is not None and depth > 1 else ():
        method = _method(thing, name)
        if type(method) is FunctionType:
            yield from _codes(method, depth - 1)
