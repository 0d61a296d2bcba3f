"""What registered hooks pile up: lists and dictionaries that each call of a layer makes longer.

Nothing is looked at before a cell has said `hook`, and then only after cells that called a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from time import thread_time
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import HookFact
from torch_inspector.observe import kinds, layers, sorts
from torch_inspector.observe.hooked import Root, function_name, lengthens, roots_of
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.last_kept import is_unread
from torch_inspector.observe.namespace import Names, hidden
from torch_inspector.observe.paths import attributes_of
from torch_inspector.observe.piles import Pile, pile_of
from torch_inspector.observe.reach import Reach

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Time for the hooks of called models, which is all or nothing, and for whether anything else leads to a pile.
_LOOK_S, _PROOF_S = 0.004, 0.020
# A pile of less, or of fewer, is not worth a search for other holders.
_SMALL_NBYTES, _FEW = 64 << 10, 4
# Less than this, kept of one call, is not worth a search.
_LEAST_NBYTES = 1 << 20
_CLOCK_EVERY = 32
_KINDS = (
    ("_forward_hooks", "forward"),
    ("_forward_pre_hooks", "forward"),
    ("_backward_hooks", "backward"),
    ("_backward_pre_hooks", "backward"),
)


@dataclass
class _Hook:
    """A function that a layer calls. Holds it: drop it at once."""

    function: Any
    layer: str
    kind: str
    module: int
    registry: Any


@dataclass
class _Held:
    """What some hooks have in common. Holds it: drop it at once."""

    root: Root
    hooks: list[_Hook] = field(default_factory=list)


class Hooks:
    """Remembers how long each pile was by address of its container; holds none."""

    def __init__(self, keys: Keys, places: Places | None) -> None:
        self._keys = keys
        self._places = places
        self._mentioned = False
        self._known: dict[int, frozenset[int]] = {}
        self._alone: dict[int, bool] = {}

    def facts(
        self, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any], called: frozenset[int]
    ) -> tuple[HookFact, ...]:
        """One fact per container of tensors that hooks make longer.

        Args:
            user: What the walk of the variables found.
            variables: The user's namespace.
            history: IPython's `Out`.
            called: Keys of the modules that the cell called.
        """
        if not self._mentions() or not called:
            return ()
        every = self._held(user, called)
        found = [(held, pile) for held in every if (pile := _pile(held)).entries]
        facts = tuple(self._fact(held, pile, user, variables, history) for held, pile in found)
        facts += self._last_kept(every, variables, history)
        self._known = {id(held.root.value): frozenset(pile.storages) for held, pile in found}
        self._alone = {key: alone for key, alone in self._alone.items() if key in self._known}
        return facts

    def _mentions(self) -> bool:
        files = self._places.latest(3) if self._places is not None and not self._mentioned else ()
        self._mentioned = self._mentioned or any("hook" in file.code for file in files)
        return self._mentioned

    def _held(self, user: Names, called: frozenset[int]) -> list[_Held]:
        """Containers that hooks of the user's modules know, each with these hooks; none if time ran out."""
        found: dict[int, _Held] = {}
        deadline = thread_time() + _LOOK_S
        modules = [(path, module, self._keys.of(module)) for path, module in user.modules]
        own = [one for one in modules if one[2] in called] or modules
        for hook in chain.from_iterable(_hooks(*one) for one in own):
            if thread_time() > deadline:
                return []
            for root in roots_of(hook.function) if hook is not None else ():
                found.setdefault(id(root.value), _Held(root)).hooks.append(hook)  # type: ignore[arg-type]
        return list(found.values())

    def _fact(
        self, held: _Held, pile: Pile, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any]
    ) -> HookFact:
        before = self._known.get(id(held.root.value), frozenset())
        kept = before <= pile.storages.keys()
        path = _path_of(held.root, user, variables)
        first = held.hooks[0]
        return HookFact(
            path=path or held.root.label,
            named=bool(path),
            alone=not path and self._is_alone(held, pile, variables, history),
            function=function_name(first.function),
            kind=first.kind,
            layer=first.layer,
            module=first.module,
            hook_count=len(held.hooks),
            entry_count=pile.entries,
            nbytes=sum(pile.storages.values()),
            new_nbytes=sum(n for key, n in pile.storages.items() if not kept or key not in before),
            new_count=sum(1 for key in pile.firsts if not kept or key not in before),
            old_kept=bool(before) and kept,
            has_history=pile.has_history,
            handle=_handle(first, variables),
            mapping=kinds.is_a(held.root.value, dict),
        )

    def _last_kept(
        self, every: list[_Held], variables: Mapping[str, Any], history: Mapping[Any, Any]
    ) -> tuple[HookFact, ...]:
        """One fact per container that hooks only store into, and per tensor in it that nothing but them leads to."""
        places = self._places
        if places is None:
            return ()
        unread = [one for one in every if all(is_unread(hook.function, one.root, places) for hook in one.hooks)]
        piles = [(one, pile_of(one.root.value, lists=False)) for one in unread[:_CLOCK_EVERY]]
        wanted = {key: nbytes for _, pile in piles for key, nbytes in pile.storages.items()}
        if sum(wanted.values()) < _LEAST_NBYTES:
            return ()
        registries = [hook.registry for held in every for hook in held.hooks]
        reach = Reach(set(wanted), (history, variables, *registries), _PROOF_S)
        reach.search(value for name, value in list(variables.items()) if not hidden(name))
        alone = reach.wanted if reach.complete else set[int]()
        return tuple(_last_fact(held, pile, alone) for held, pile in piles if alone & pile.storages.keys())

    def _is_alone(self, held: _Held, pile: Pile, variables: Mapping[str, Any], history: Mapping[Any, Any]) -> bool:
        """True if it is proven that no variable leads to a pile but through the hooks; asked once for each."""
        key = id(held.root.value)
        if pile.entries < _FEW or sum(pile.storages.values()) < _SMALL_NBYTES:
            return False
        if key not in self._alone:
            registries = [hook.registry for hook in held.hooks]
            reach = Reach(set(pile.storages), (history, variables, *registries), _PROOF_S)
            reach.search(value for name, value in list(variables.items()) if not hidden(name))
            self._alone[key] = reach.complete and len(reach.wanted) == len(pile.storages)
        return self._alone[key]


def _last_fact(held: _Held, pile: Pile, alone: set[int]) -> HookFact:
    first, own = held.hooks[0], alone & pile.storages.keys()
    nbytes = sum(pile.storages[key] for key in own)
    owner = f"{kinds.class_name(held.root.owner)}." if held.root.owner is not None else ""
    return HookFact(
        path=held.root.label,
        named=False,
        alone=True,
        function=f"{owner}{function_name(first.function)}",
        kind=first.kind,
        layer=first.layer,
        module=first.module,
        hook_count=len(held.hooks),
        entry_count=len(own),
        nbytes=nbytes,
        new_nbytes=nbytes,
        new_count=len(own),
        old_kept=False,
        has_history=pile.has_history,
        mapping=True,
        unread=True,
    )


def _pile(held: _Held) -> Pile:
    """The tensors that one container has been given by hooks; none if no hook gives it any, or one per layer."""
    pile = pile_of(held.root.value, lists=True)
    if pile.entries <= len(held.hooks):
        return Pile()
    appends, stores = lengthens([hook.function for hook in held.hooks])
    if appends:
        return pile
    return pile_of(held.root.value, lists=False) if stores else Pile()


def _hooks(path: str, module: Any, key: int) -> Iterator[_Hook | None]:
    """All hooks of a module; None now and then, for a look at the clock."""
    for count, (name, layer) in enumerate(layers.walk_modules(module)):
        fields = kinds.fields_of(layer)
        for attribute, kind in _KINDS:
            if fields.get(attribute):
                where = layers.typed_path(path, module, name)
                yield from _registered(fields.get(attribute), where, kind, key)
        for parameter, tensor in _items(fields.get("_parameters")):
            if tensor is not None and tensor._backward_hooks:
                where = f"{layers.typed_path(path, module, name)}.{parameter}"
                yield from _registered(tensor._backward_hooks, where, "gradient", key)
        if count % _CLOCK_EVERY == 0:
            yield None


def _registered(registry: Any, where: str, kind: str, key: int) -> Iterator[_Hook]:
    for _, function in _items(registry):
        yield _Hook(function, where, kind, key, registry)


def _items(mapping: Any) -> Iterable[tuple[Any, Any]]:
    return list(dict.items(mapping)) if mapping and kinds.is_a(mapping, dict) else ()


def _path_of(root: Root, user: Names, variables: Mapping[str, Any]) -> str:
    """What the user can type to get at it; empty if the walk of the variables did not come there."""
    for name, value in list(variables.items()):
        if value is root.value and not hidden(name):
            return str(name)
        if value is root.owner and root.owner is not None and not hidden(name):
            return f"{name}.{root.attribute}"
    group = user.groups.get(id(root.value))
    if group is not None:
        return group.path
    modules = (path for path, module in user.modules if module is root.owner)
    inside = chain(modules, _owners(root, user))
    return next((f"{path}.{root.attribute}" for path in inside), "") or _inner(root, user)


def _owners(root: Root, user: Names) -> Iterator[str]:
    """Paths of layers below the user's modules that are the owner."""
    if root.owner is not None and kinds.is_a(root.owner, torch.nn.Module):
        for path, module in user.modules:
            names = (name for name, layer in layers.walk_modules(module) if layer is root.owner)
            yield from (layers.typed_path(path, module, name) for name in names)


def _inner(root: Root, user: Names) -> str:
    """The path of a container by that of one in it."""
    if not kinds.is_a(root.value, dict):
        return ""
    inner = (user.groups.get(id(value)) for _, value in _items(root.value))
    return next((group.path.rpartition("[")[0] for group in inner if group is not None), "")


def _handle(hook: _Hook, variables: Mapping[str, Any]) -> str:
    """What the user can type to get what would remove the hook; empty if no variable leads there."""
    numbers = {number for number, function in _items(hook.registry) if function is hook.function}
    named = [(str(name), value) for name, value in list(variables.items()) if not hidden(name)]
    for name, value in chain(named, *(_parts(*one) for one in named)):
        if kinds.class_name(value) == "RemovableHandle" and kinds.fields_of(value).get("id") in numbers:
            return name
    return ""


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object of the user's own, first elements of a list."""
    if type(value) is list:
        yield from ((f"{path}[{place}]", part) for place, part in enumerate(value[:_FEW]))
    elif sorts.sort_of(type(value)) in ("object", "module"):
        yield from ((f"{path}.{name}", part) for name, part in attributes_of(value))
