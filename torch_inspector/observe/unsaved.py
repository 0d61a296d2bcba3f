"""Tensor attributes that a loaded model lacks: the model with the same weights has others there."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import UnsavedFact
from torch_inspector.observe import as_torch, attributes, kinds, layers
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.naming import names_of

if TYPE_CHECKING:
    from torch_inspector.observe.keys import Keys
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.place import Places
    from torch_inspector.observe.states import StateWatch

# Named models that are compared with each other, parameters of each, numbers of each tensor, facts.
_MODELS, _WEIGHTS, _NUMBERS, _FACTS = 16, 16, 1_000, 8


class Unsaved:
    """Looks at models that were loaded in this cell or before, and called in this one."""

    def __init__(self, keys: Keys, places: Places | None) -> None:
        self._keys = keys
        self._places = places
        self._loaded: set[int] = set()

    def facts(self, names: Names, states: StateWatch | None, called: frozenset[int]) -> tuple[UnsavedFact, ...]:
        """One fact per attribute that differs between a loaded model and its source."""
        loads = states.loads if states is not None else []
        self._loaded.update(one.module for one in loads if not one.of_optimizer)
        wanted = self._loaded & called
        if not wanted:
            return ()
        models = names.modules[:_MODELS]
        found: list[UnsavedFact] = []
        for path, module in models:
            if self._keys.of(module) in wanted:
                twins = [one for one in models if type(one[1]) is type(module) and one[1] is not module]
                for other, twin in twins:
                    found.extend(self._between(path, module, other, twin))
        return tuple(found[:_FACTS])

    def _between(self, path: str, module: Any, other: str, twin: Any) -> Iterator[UnsavedFact]:
        layers_of_twin = dict(layers.walk_modules(twin))
        pairs = [(name, one, layers_of_twin.get(name)) for name, one in layers.walk_modules(module)]
        own = [(name, one, its) for name, one, its in pairs if not kinds.module_of(type(one)).startswith("torch.")]
        differing = [(name, one, key) for name, one, its in own if type(one) is type(its) for key in _other(one, its)]
        if differing and _same_weights(module, twin):
            for name, one, key in differing:
                inner = f"{layers.typed_path('', module, name)}.{key}"
                yield self._fact((path, other, inner), one, key)

    def _fact(self, paths: tuple[str, str, str], layer: Any, key: str) -> UnsavedFact:
        owner, other, inner = paths
        methods = kinds.methods_of(type(layer))
        made = next(method for method in methods if method.co_name == "__init__")
        return UnsavedFact(
            path=f"{owner}{inner}",
            other=f"{other}{inner}",
            owner=owner,
            kind=kinds.class_name(layer),
            name=key,
            setters=tuple(one.co_name for one in methods if one is not made and key in _stored(one)),
            place=attributes.place_of(self._places, made, key),
        )


def _other(layer: Any, its: Any) -> list[str]:
    """Tensors that `__init__` sets and `forward` reads and leaves as they are, with other numbers in the other one."""
    methods = kinds.methods_of(type(layer))
    made = next((method for method in methods if method.co_name == "__init__"), None)
    running = _running(methods)
    read = frozenset[str]().union(*map(names_of, running))
    written = frozenset[str]().union(*map(_stored, running))
    fields, others = kinds.fields_of(layer), kinds.fields_of(its)
    keys = [key for key in list(fields) if type(key) is str and key in read - written]
    set_first = _stored(made) if made is not None else frozenset[str]()
    return [key for key in keys if key in set_first and _differ(fields[key], others.get(key))]


def _running(methods: list[CodeType]) -> list[CodeType]:
    """The code of `forward`, and of the methods that it leads to."""
    left = {one.co_name: one for one in reversed(methods) if one.co_name != "__init__"}
    found = [left.pop("forward")] if "forward" in left else []
    for code in found:  # grows while it is read
        found.extend(left.pop(name) for name in names_of(code) & left.keys())
    return found


@lru_cache(maxsize=512)
def _stored(code: CodeType) -> frozenset[str]:
    """Attributes that code gives a value."""
    return frozenset(one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR")


def _differ(value: Any, other: Any) -> bool:
    """True for tensors of several floating point numbers that are not the same."""
    if not (_is_plain(value) and _is_plain(other)):
        return False
    if value.shape != other.shape or value.dtype is not other.dtype:
        return True
    return not torch.equal(_some(value), _some(other))


def _is_plain(value: Any) -> bool:
    return type(value) is torch.Tensor and value.dim() > 0 and value.is_floating_point() and is_in_memory(value)


def _same_weights(module: Any, twin: Any) -> bool:
    """True if the first numbers of the first parameters are the same, and not each the same tensor."""
    both = (layers.walk_parameters(module), layers.walk_parameters(twin))
    pairs = [pair for pair, _ in zip(zip(*both, strict=False), range(_WEIGHTS), strict=False)]
    same = (a[0] == b[0] and a[1] is not b[1] and _equal(a[1], b[1]) for a, b in pairs)
    return bool(pairs) and all(same)


def _equal(one: Any, other: Any) -> bool:
    if not (is_in_memory(one) and is_in_memory(other)) or one.shape != other.shape or one.dtype is not other.dtype:
        return False
    return torch.equal(_some(one), _some(other))


def _some(tensor: Any) -> Any:
    """The first numbers, in one row."""
    row = as_torch.detach(tensor)
    row = row.view(-1) if row.is_contiguous() else row[(0,) * (row.dim() - 1)]
    return row[:_NUMBERS]
