"""Tensors that a module of the user's own class holds as plain attributes: no parameter, no buffer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import AttributeFact, Place, syntax
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.groups import held_by
from torch_inspector.observe.moved_by import MOVES, is_moved, is_set_first
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.place import Places

# Modules looked at after one cell, and facts made of them.
_LAYERS, _FACTS = 2_000, 32
# Entries of a container that are looked at.
_ENTRIES = 32
_REGISTRIES = ("_parameters", "_buffers", "_modules")
_FILLS = frozenset(["append", "extend", "insert", "update", "clear", "pop", "setdefault"])
# What knows where its tensors belong can make them anew there, whenever it is called.
_KNOWS = frozenset(["device", *MOVES])


class Attributes:
    """Looks at modules that are new, may have been moved, or may have got an optimizer."""

    def __init__(self, places: Places | None) -> None:
        self._places = places
        self._seen: dict[int, str] = {}
        """Addresses of the named modules, with device and type of one parameter: a wrong guess only costs a look."""
        self._optimizers: frozenset[int] = frozenset()

    def facts(self, names: Names, code: str) -> tuple[AttributeFact, ...]:
        """One fact per tensor that `forward` reads from an attribute which `__init__`, or a part of it, has set."""
        seen, self._seen = self._seen, {id(module): _kept_as(module) for _, module in names.modules}
        optimizers, self._optimizers = self._optimizers, frozenset(id(one) for _, one in names.optimizers)
        everything = optimizers != self._optimizers or ".to(" in code or ".cuda(" in code
        modules = [one for one in names.modules if everything or seen.get(id(one[1])) != self._seen[id(one[1])]]
        stepped = frozenset[int]().union(*(held_by(one) for _, one in names.optimizers if modules))
        found: list[AttributeFact] = []
        left, looked = _LAYERS, set[int]()
        for path, module in modules:
            for name, layer in layers.walk_modules(module):
                left -= 1
                if left < 0 or len(found) >= _FACTS:
                    return tuple(found)
                if id(layer) not in looked and not kinds.module_of(type(layer)).startswith("torch."):
                    looked.add(id(layer))
                    found.extend(self._of(path, module, name, layer, stepped))
        return tuple(found)

    def _of(self, path: str, module: Any, prefix: str, layer: Any, stepped: frozenset[int]) -> Iterator[AttributeFact]:
        fields = {key: one for key, one in list(kinds.fields_of(layer).items()) if type(key) is str}
        tensors = [(key, where, tensor) for key, one in fields.items() for where, tensor in _tensors_in(one)]
        if not tensors:
            return
        methods = kinds.methods_of(type(layer))
        own = {name for kept in _REGISTRIES if kinds.is_registry(fields.get(kept)) for name in fields[kept]}
        makers = _makers(methods, own, [file.tree for file in self._places.latest()] if self._places else [])
        knowing = [one for one in methods if one.co_name != "__init__" and _knows(one, own)]
        parameters = [p for _, p in layers.walk_parameters(module)]
        for key, where, tensor in tensors:
            made = next((one for one in makers if key in one.co_names), None)
            if made is None or not _is_read([m for m in methods if not any(m is one for one in makers)], key):
                continue
            if made.co_name == "__init__" and any(_names(made, one) and key in one.co_names for one in knowing):
                continue  # a part of it that knows the device has set it, or sets it again
            if is_set_first(type(layer), key, self._places):
                continue
            if where and (kinds.is_a(tensor, torch.nn.Parameter) or _is_filled(methods, key)):
                continue
            yield AttributeFact(
                path=f"{layers.typed_path(path, module, prefix)}.{key}{where}",
                owner=path,
                kind=kinds.class_name(layer),
                name=key,
                element=where,
                shape=tuple(as_torch.shape(tensor)),
                dtype=_dtype_of(tensor),
                device=str(as_torch.device(tensor)),
                owner_devices=tuple(sorted({str(as_torch.device(p)) for p in parameters})),
                wants_gradient=as_torch.requires_grad(tensor) and as_torch.is_leaf(tensor),
                stepped=id(tensor) in stepped,
                owner_stepped=any(id(p) in stepped for p in parameters),
                moved=is_moved(type(layer), key, self._places),
                place=place_of(self._places, made, key),
                container=type(fields[key]).__name__ if where else "",
                method=made.co_name,
                owner_dtypes=tuple(sorted({_dtype_of(p) for p in parameters if as_torch.dtype(p).is_floating_point})),
            )


def _makers(methods: list[CodeType], own: set[str], trees: list[ast.Module | None]) -> list[CodeType]:
    """`__init__`, and methods without arguments that only it calls, in which a tensor cannot know its device.

    Args:
        methods: All code of the class.
        own: Names of the module's parameters, buffers and parts.
        trees: Texts of the cells, which may call a method too.
    """
    made = next((one for one in methods if one.co_name == "__init__"), None)
    others = [one for one in methods if one.co_name != "__init__"]
    parts = (one for one in others if made is not None and _names(made, one) and one.co_argcount == 1)
    alone = (one for one in parts if not any(_names(other, one) for other in others) and not _knows(one, own))
    alone = (one for one in alone if not any(_is_called(one, tree) for tree in trees if tree is not None))
    return [made, *alone] if made is not None else []


def _knows(code: CodeType, own: set[str]) -> bool:
    """True for code that names a device, or something of the module, whose device a tensor may be given."""
    names = names_of(code)
    return bool(names & (own | _KNOWS)) or any(one.endswith("_like") or one.startswith("new_") for one in names)


def _is_called(method: CodeType, tree: ast.Module) -> bool:
    """True if a text names a method of something else than `self`: `net.reset()`."""
    named = (one for one in syntax.walk(tree) if isinstance(one, ast.Attribute) and one.attr == method.co_name)
    return any(dotted(one.value) not in ("self", "super()", *method.co_varnames[:1]) for one in named)


def _names(code: CodeType, method: CodeType) -> bool:
    """True if a code names a method, also by the longer name that a private one has in it."""
    private = method.co_name.startswith("__")
    return any(one == method.co_name or (private and one.endswith(method.co_name)) for one in code.co_names)


def place_of(places: Places | None, made: CodeType, key: str) -> Place:
    """The line of `__init__` that sets the attribute."""
    file = places.file_of_code(made) if places is not None else None
    if places is None or file is None or file.tree is None:
        return Place()
    own = made.co_varnames[0] if made.co_argcount else "self"
    lines = [
        node.lineno
        for node in syntax.walk(file.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and dotted(node) == f"{own}.{key}"
        and node.lineno >= made.co_firstlineno
    ]
    return places.place_in(file, made, min(lines)) if lines else Place()


def _kept_as(module: Any) -> str:
    """Device and type of the first parameter; empty if there is none."""
    first = next((p for _, p in layers.walk_parameters(module)), None)
    return f"{as_torch.device(first)} {_dtype_of(first)}" if first is not None else ""


def _dtype_of(tensor: Any) -> str:
    return str(as_torch.dtype(tensor)).removeprefix("torch.")


def _tensors_in(value: Any) -> list[tuple[str, Any]]:
    """The tensor itself, or the first entry of a plain container of nothing but tensors, with its index as typed."""
    if kinds.is_a(value, torch.Tensor):
        return [("", value)]
    if type(value) is dict:
        entries = [(f"[{key!r}]", one) for key, one in value.items() if kinds.is_one_of(key, (str, int))]
    elif kinds.is_one_of(value, (list, tuple)):
        entries = [(f"[{number}]", one) for number, one in enumerate(value[:_ENTRIES])]
    else:
        return []
    return entries[:1] if entries and all(kinds.is_a(one, torch.Tensor) for _, one in entries[:_ENTRIES]) else []


def _is_read(methods: list[CodeType], key: str) -> bool:
    return any(key in names_of(code) for code in methods if code.co_name != "__init__")


def _is_filled(methods: list[CodeType], key: str) -> bool:
    """True if a method names a container and something that changes what is in it: a record, no constants."""
    return any(key in names_of(code) and _FILLS & names_of(code) for code in methods if code.co_name != "__init__")
