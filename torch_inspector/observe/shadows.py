"""A copy of a module that can be run a second time without touching anything of the user's, or none.

The copy shares no tensor, no container and no hook with the module. It is made only of layers of torch and of classes
whose code is known from cells and does nothing but compute: whatever else it might do would be done twice.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds, private
from torch_inspector.observe.definitions import plain_definition
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Numbers that are copied, and things in the fields of modules.
_ELEMENTS, _THINGS = 20_000_000, 5_000
_DEPTH = 6
_TRUSTED = ("torch", "builtins", "typing")
_PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.Size)
_CONTAINERS = (list, tuple)
_HOOKS = tuple(
    f"_{kind}_hooks{more}"
    for kind in ("forward", "forward_pre", "backward", "backward_pre")
    for more in ("", "_with_kwargs", "_always_called")
)
# What a class may define without that code of it runs that is not looked at.
_SPECIAL = frozenset(
    (
        "__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__", "__init__", "__repr__",
        "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__parameters__", "extra_repr",
        "__annotations_cache__", "__constants__", "__len__", "__iter__", "__getitem__", "__classcell__",
    )
)  # fmt: skip
_BUILTINS = frozenset(
    (
        "abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min",
        "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "zip", "ValueError",
        "AssertionError", "RuntimeError", "hasattr", "True", "False", "None",
    )
)  # fmt: skip
# Parts of torch that do more than compute.
_DOES_MORE = (
    "manual_seed", "seed", "set_", "save", "load", "use_", "compile", "distributed", "multiprocessing", "random",
    "utils", "cuda", "jit", "autograd", "hub", "ops", "library", "fx", "onnx", "profiler", "_", "from_file", "export",
    "backends", "mps", "xpu", "initial_seed", "get_rng_state", "init", "Generator", "inference_mode", "accelerator",
)  # fmt: skip
_METHODS_REFUSED = frozenset(("backward", "cuda", "pin_memory", "share_memory_", "register_hook", "data_ptr", "numpy"))
_REFUSED = (
    ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor,
    ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try,
)  # fmt: skip


class _Refused(Exception):  # noqa: N818  (says what happened: nothing went wrong)
    """It cannot be copied, or running it again may do more than compute."""


def shadow_of(module: Any, places: Places) -> nn.Module | None:
    """A copy that computes the same and shares nothing; None if that cannot be had for certain."""
    try:
        if private.has_global_hooks():
            return None
        copying = _Copying()
        with torch.no_grad():
            shadow: nn.Module = copying.module(module)
        judgement = _Judgement(places, copying.kinds.values())
        for kind in copying.kinds.values():
            judgement.kind(kind)
    except _Refused:
        return None
    return shadow


class _Copying:
    """One copy in the making; what is met twice is copied once."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}
        self._elements, self._things = _ELEMENTS, _THINGS
        self.kinds: dict[int, type[Any]] = {}
        """Classes of the modules that were copied, by address."""

    def module(self, module: Any) -> Any:
        """A module with all below it."""
        if id(module) in self._known:
            return self._known[id(module)]
        kind = type(module)
        if not kinds.is_a(module, nn.Module) or kinds.is_a(module, nn.modules.lazy.LazyModuleMixin):
            raise _Refused
        self.kinds[id(kind)] = kind
        fields = kinds.fields_of(module)
        hooks = ("_forward_hooks", "_forward_pre_hooks")
        if any(fields.get(name) for name in hooks) or fields.get("_compiled_call_impl") or "forward" in fields:
            raise _Refused
        shadow = self._known[id(module)] = object.__new__(kind)
        own = kinds.fields_of(shadow)
        for name, value in fields.items():
            own[name] = OrderedDict() if name in _HOOKS else self.value(value, 0)
        return shadow

    def value(self, value: Any, depth: int) -> Any:
        """Anything that stands in a field of a module."""
        self._things -= 1
        if self._things < 0 or depth > _DEPTH:
            raise _Refused
        if kinds.is_one_of(value, _PLAIN) or (type(value) is FunctionType and _is_of_torch(value)):
            return value
        if type(value) is BuiltinFunctionType and _is_of_torch(value):
            return value
        if id(value) not in self._known:
            self._known[id(value)] = self._made(value, depth + 1)
        return self._known[id(value)]

    def _made(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kinds.is_among(kind, (torch.Tensor, nn.Parameter)):
            return self.tensor(value)
        if kinds.is_among(kind, (dict, OrderedDict)):
            return kind((self.key(key), self.value(one, depth)) for key, one in value.items())
        if kinds.is_among(kind, (set, frozenset)):
            return kind(map(self.key, value))
        if kinds.is_among(kind, _CONTAINERS):
            return kind(self.value(one, depth) for one in value)
        return self.module(value)

    def key(self, value: Any) -> Any:
        """An element of a set or key of a dictionary: what is not plain would be asked for its hash."""
        if not _is_plain(value):
            raise _Refused
        return value

    def tensor(self, value: Any) -> torch.Tensor:
        """A tensor of the same values with memory of its own."""
        if not is_in_memory(value) or value.is_nested or value.is_quantized:
            raise _Refused
        self._elements -= value.numel()
        if self._elements < 0:
            raise _Refused
        copied: torch.Tensor = value.detach().clone()
        # A parameter stays one: layers ask for it.
        return nn.Parameter(copied, requires_grad=False) if type(value) is nn.Parameter else copied


class _Judgement:
    """Whether the code of some classes does nothing but compute."""

    def __init__(self, places: Places, some: Iterable[type[Any]]) -> None:
        self._places = places
        bases = {id(base): base for kind in some for base in kinds.mro_of(kind)}.values()
        self._bases = [base for base in bases if kinds.module_of(base).partition(".")[0] not in _TRUSTED]
        self._seen: set[CodeType] = set()

    def kind(self, kind: type[Any]) -> None:
        """Refuses a class unless all that a call of its modules may run is known to compute only."""
        for base in kinds.mro_of(kind):
            if not kinds.is_among(base, self._bases):
                continue
            fields = kinds.class_fields(base)
            for name, member in list(fields.items()):
                special = name.startswith("__") and name.endswith("__")
                if name not in _SPECIAL and (special or not (_is_plain(member) or type(member) is FunctionType)):
                    raise _Refused
            if "forward" in fields:
                self.function(fields["forward"])

    def function(self, function: Any) -> None:
        """Refuses a function unless all that it does is known."""
        if type(function) is not FunctionType or set(function.__code__.co_freevars) - {"__class__"}:
            raise _Refused
        code = function.__code__
        if code in self._seen:
            return
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if not all(map(_is_plain, defaults)):
            raise _Refused
        self._seen.add(code)
        parts = [part for statement in self._node_of(code).body for part in syntax.walk(statement)]
        own = {*code.co_varnames, *code.co_cellvars, "__class__"}
        own |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for part in parts:
            if isinstance(part, _REFUSED) or getattr(part, "attr", "") in _METHODS_REFUSED:
                raise _Refused
            if isinstance(part, ast.Attribute):
                self._named(part.attr)
        for name in _chains(parts):
            root = name.partition(".")[0]
            if root not in own:
                self._outside(name, root, function.__globals__)

    def _named(self, name: str) -> None:
        """Judges the methods of this name: the code may call one of them, on whatever module."""
        for base in self._bases:
            member = kinds.class_fields(base).get(name)
            if type(member) is FunctionType:
                self.function(member)

    def _node_of(self, code: CodeType) -> ast.FunctionDef:
        """The text of a function without decorators, in a cell."""
        tree = self._places.tree_of(code)
        found = plain_definition(tree, code) if tree is not None else None
        if found is None:
            raise _Refused
        return found

    def _outside(self, name: str, root: str, values: dict[str, Any]) -> None:
        """What the code names and does not make itself."""
        if root not in values:
            if root not in _BUILTINS or not hasattr(builtins, root):
                raise _Refused
            return
        value = values[root]
        if _is_plain(value) or value is math:
            return
        if value is torch or value is functional or value is nn:
            if any(part.startswith(_DOES_MORE) for part in name.split(".")[1:]):
                raise _Refused
            return
        if kinds.is_one_of(value, (FunctionType, BuiltinFunctionType)) and _is_of_torch(value):
            return
        self.function(value)


def _is_plain(value: Any) -> bool:
    return kinds.is_one_of(value, _PLAIN) or (
        type(value) is tuple and all(kinds.is_one_of(one, _PLAIN) for one in value)
    )


def _is_of_torch(function: Any) -> bool:
    """True for functions that `torch` or `torch.nn.functional` offer, and that only compute."""
    name = getattr(function, "__name__", "")
    if type(name) is not str or name.startswith(_DOES_MORE):
        return False
    return any(vars(part).get(name) is function for part in (torch, functional))


def _chains(parts: list[ast.AST]) -> Iterator[str]:
    """Dotted names as long as they are written, and every other name."""
    inner: set[int] = set()
    for part in parts:  # owners come before what they are made of
        if id(part) not in inner and isinstance(part, (ast.Attribute, ast.Name)) and dotted(part):
            inner.update(id(one) for one in syntax.walk(part))
            yield dotted(part)
