"""Hooks of modules, and of their parameters, that are there more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from torch import nn

from torch_inspector.facts import HookCountFact
from torch_inspector.observe import kinds, layers, private
from torch_inspector.observe.history import storages_of
from torch_inspector.observe.hooked import tensors_of

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Names

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OF_WEIGHTS = ("_backward_hooks", "_post_accumulate_grad_hooks")
# Layers looked at after one cell, hooks of one layer, facts.
_LAYERS, _EACH, _FACTS = 2_000, 64, 32
_PLAIN = (int, float, bool, str, bytes, type(None))
_SELF: Any = MethodType.__dict__["__self__"]
_FUNCTION: Any = MethodType.__dict__["__func__"]
_FUNC: Any = partial.__dict__["func"]
_ARGS: Any = partial.__dict__["args"]
_KEYWORDS: Any = partial.__dict__["keywords"]
_Signature = tuple[Any, ...]
_Found = tuple[HookCountFact, list[Any]]
"""A fact, and the hooks that it is about."""


class HookCounts:
    """Looks once the text of a cell has spoken of hooks."""

    def __init__(self) -> None:
        self._wanted = False

    def facts(self, names: Names, code: str) -> tuple[HookCountFact, ...]:
        """Every hook of which a layer has two or more."""
        self._wanted = self._wanted or "hook" in code
        if not self._wanted:
            return ()
        found: list[_Found] = []
        left, looked = _LAYERS, set[int]()
        for path, module in names.modules:
            for name, layer in layers.walk_modules(module):
                left -= 1
                if left < 0 or len(found) >= _FACTS:
                    return _with_memory(found, names)
                if id(layer) in looked:
                    continue
                looked.add(id(layer))
                fields = kinds.fields_of(layer)
                inner = layers.typed_path(path, module, name)
                registries = [(inner, kind, fields.get(kind)) for kind in _HOOKS]
                for where, kind, hooks in (*registries, *_of_weights(fields, inner)):
                    if hooks and kinds.is_a(hooks, dict):
                        found.extend(_repeated(where, path, kind, hooks))
        return _with_memory(found, names)


def _of_weights(fields: dict[str, Any], path: str) -> Iterator[tuple[str, str, Any]]:
    """The registries of a layer's parameters, whose kind says that they are those of tensors."""
    own = fields.get("_parameters")
    for name, weight in dict.items(own) if type(own) is dict else ():
        if type(weight) is nn.Parameter:
            yield from ((f"{path}.{name}", f"parameter{kind}", getattr(weight, kind)) for kind in _OF_WEIGHTS)


def _with_memory(found: list[_Found], names: Names) -> tuple[HookCountFact, ...]:
    """The facts with what only the hooks lead to."""
    known, facts = set(storages_of(names)) if found else set(), []
    for fact, hooks in found:
        own = [private.storage_of(tensor) for hook in hooks for tensor in tensors_of(hook)]
        alone = {one[0]: one[1] for one in own if one is not None and one[0] not in known}
        known |= alone.keys()
        facts.append(fact._replace(held_nbytes=sum(alone.values())))
    return tuple(facts)


def _repeated(path: str, owner: str, kind: str, hooks: Any) -> list[_Found]:
    functions = list(dict.values(hooks))[:_EACH]
    if len(functions) == 1:
        return []
    signed = [(one, signature) for one in functions if (signature := _signature(one)) is not None]
    counts = Counter(signature for _, signature in signed)
    facts = []
    for signature, count in counts.items():
        if count > 1:
            own = [one for one, other in signed if other == signature]
            same = all(one is own[0] for one in own)
            facts.append((HookCountFact(path, owner, kind.strip("_"), str(signature[0]), count, same), own))
    return facts


def _signature(hook: Any) -> _Signature | None:
    """Equal for functions of one text with equal plain values around them; None for what is not known."""
    if type(hook) is partial:
        given = tuple(value if kinds.is_one_of(value, _PLAIN) else kinds.class_name(value) for value in _given(hook))
        inner = _signature(_FUNC.__get__(hook))
        return None if inner is None else (*inner, given)
    if type(hook) is MethodType:
        function = _signature(_FUNCTION.__get__(hook))
        return None if function is None else (*function, kinds.class_name(_SELF.__get__(hook)))
    if type(hook) is not FunctionType or str(hook.__module__).partition(".")[0] == "torch":
        return None
    closure = tuple(_plain(cell) for cell in hook.__closure__ or ())
    defaults = tuple(
        value if kinds.is_one_of(value, _PLAIN) else kinds.class_name(value) for value in hook.__defaults__ or ()
    )
    return (hook.__qualname__, hook.__code__.co_code, closure, defaults)


def _given(hook: Any) -> list[Any]:
    """What a `partial` holds for its function."""
    return [*_ARGS.__get__(hook), *dict.values(_KEYWORDS.__get__(hook))]


def _plain(cell: Any) -> Any:
    """What a variable of the function around a hook holds, if that can be compared; else its type."""
    try:
        value = cell.cell_contents
    except ValueError:
        return None
    return (type(value).__name__, value) if kinds.is_one_of(value, _PLAIN) else kinds.class_name(value)
