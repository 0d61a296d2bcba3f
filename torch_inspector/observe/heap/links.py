"""How the user would type a part of an object, given how the object is typed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    TracebackType,
)
from typing import Any

import torch

from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.paths import key_text, name_of_part, path_of_attribute

_CACHE = type(lru_cache(lambda: None))
_REGISTERED = ("_parameters", "_buffers", "_modules")


def extended(path: str, before: Any, parent: Any, child: Any) -> str:
    """The path of a part, given the path of what holds it.

    Args:
        path: Path of `parent`.
        before: What holds `parent`: an instance dictionary belongs to its object.
        parent: The holder.
        child: The part.
    """
    for kind, describe in _STEPS:
        if kinds.is_a(parent, kind):
            return describe(path, before, parent, child)
    return _attribute(path, before, parent, child)


def _in_dict(path: str, before: Any, parent: Any, child: Any) -> str:
    key = next((key for key, value in items_of(parent) if value is child), _NOTHING)
    if key is _NOTHING:
        return f"{path} (a key)"
    if type(key) is str and type(before) is type:
        return path_of_attribute(path, key)
    if type(key) is str and before is not None and kinds.fields_of(before) is parent:
        return path if key in _REGISTERED and kinds.is_a(before, torch.nn.Module) else path_of_attribute(path, key)
    if type(key) is str and _registers(before, parent):
        return f"{path}[{key}]" if key.isdigit() else path_of_attribute(path, key)
    return f"{path}[{key_text(key)}]"


_NOTHING = object()


def _registers(before: Any, parent: Any) -> bool:
    """True for the dictionaries in which a module keeps its parameters, buffers and layers."""
    fields = before if type(before) is dict else kinds.fields_of(before) if before is not None else {}
    return any(fields.get(name) is parent for name in _REGISTERED)


def items_of(mapping: Any) -> Iterator[tuple[Any, Any]]:
    """Entries of a dictionary; none if it is changed meanwhile."""
    try:
        yield from list(dict.items(mapping))
    except RuntimeError:
        return


def _in_sequence(path: str, before: Any, parent: Any, child: Any) -> str:
    if type(before) is FunctionType and before.__closure__ is parent and type(child) is CellType:
        name = {
            id(cell): name for cell, name in zip(before.__closure__ or (), before.__code__.co_freevars, strict=False)
        }.get(id(child))
        return f"{path} (closure over {name})"
    iterate = next(k for k in (list, tuple, deque) if kinds.is_a(parent, k)).__iter__
    place = next((n for n, part in enumerate(iterate(parent)) if part is child), None)
    return f"{path}[{place}]" if place is not None else _attribute(path, None, parent, child)


def _in_set(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return f"{path} (an element)"


def _in_function(path: str, _before: Any, parent: Any, child: Any) -> str:
    closure = parent.__closure__
    if closure is child:
        return path
    cells = closure or ()
    names = parent.__code__.co_freevars
    for name, cell in zip(names, cells, strict=False):
        if cell is child:
            return f"{path} (closure over {name})"
    if parent.__defaults__ is child or parent.__kwdefaults__ is child:
        return f"{path} (default argument)"
    return f"{path} (closure)" if type(child) is tuple else f"{path}.…"


def _same(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return path


def _in_method(path: str, _before: Any, parent: Any, child: Any) -> str:
    return f"{path}.__self__" if parent.__self__ is child else f"{path}.__func__"


def _in_partial(path: str, _before: Any, parent: Any, child: Any) -> str:
    for name in ("func", "args", "keywords"):
        if partial.__dict__[name].__get__(parent) is child:
            return f"{path}.{name}"
    return path


def _in_frame(path: str, _before: Any, parent: Any, child: Any) -> str:
    line = f"line {parent.f_lineno} in {parent.f_code.co_name}"
    with locals_of(parent, asked=True) as values:
        name = next((name for name, value in values.items() if value is child), None)
    return f"{path}, {line}: {name}" if name is not None else f"{path}, {line}"


def _in_traceback(path: str, _before: Any, _parent: Any, _child: Any) -> str:
    return path


def _in_generator(path: str, _before: Any, parent: Any, child: Any) -> str:
    frame = parent.gi_frame if type(parent) is GeneratorType else parent.cr_frame
    if frame is None or frame is child:
        return path
    with locals_of(frame, asked=True) as values:
        name = next((name for name, value in values.items() if value is child), None)
    return f"{path} (local {name} of the paused {frame.f_code.co_name})" if name is not None else path


def _attribute(path: str, _before: Any, parent: Any, child: Any) -> str:
    if kinds.is_a(parent, BaseException):
        return (
            path if kinds.is_one_of(child, (TracebackType, FrameType)) else f"{path}.…" if child is not None else path
        )
    if kinds.is_a(parent, torch.Tensor) and kinds.fields_of(parent) is not child:
        return f"{path} (a hook)" if kinds.is_a(child, dict) else f"{path}.grad_fn"
    if type(parent) is _CACHE:
        return f"{path} (its cache)"
    if kinds.is_a(parent, type) and type(child) is dict:
        return path
    name = name_of_part(parent, child)
    if name is None and kinds.is_a(parent, type):
        name = next((key for key, value in kinds.class_fields(parent).items() if value is child), None)
    # From Python 3.13 on an object refers to its attributes past its dictionary.
    if name == "" or (name in _REGISTERED and kinds.is_a(parent, torch.nn.Module)):
        return path
    return path_of_attribute(path, name) if name else f"{path}.…"


_Describe = Callable[[str, Any, Any, Any], str]
_STEPS: tuple[tuple[type[Any], _Describe], ...] = (
    (dict, _in_dict),
    (list, _in_sequence),
    (tuple, _in_sequence),
    (deque, _in_sequence),
    (set, _in_set),
    (frozenset, _in_set),
    (FunctionType, _in_function),
    (CellType, _same),
    (MethodType, _in_method),
    (BuiltinFunctionType, _same),
    (partial, _in_partial),
    (FrameType, _in_frame),
    (TracebackType, _in_traceback),
    (GeneratorType, _in_generator),
    (CoroutineType, _in_generator),
    (MappingProxyType, _same),
)
