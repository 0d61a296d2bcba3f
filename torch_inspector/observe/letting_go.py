"""What a cell lets go of, and who holds it all the same.

What a deleted variable leads to is looked at when a cell begins whose text deletes something, and kept as numbers.
When it has ended, the memory is searched for: by the walk of the variables, in graphs, then through all references.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import thread_time
from types import FunctionType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import DeletionFact
from torch_inspector.observe import kinds, layers, sorts
from torch_inspector.observe.deletions import Deletion, Deletions, assigned, deletions
from torch_inspector.observe.fellows import fellows
from torch_inspector.observe.generations import notebooks_own
from torch_inspector.observe.history import module_tensors, node_of, optimizer_tensors, storages_of
from torch_inspector.observe.hooked import hook_with
from torch_inspector.observe.namespace import Names, hidden, walk_paths
from torch_inspector.observe.operands import at
from torch_inspector.observe.paths import key_text
from torch_inspector.observe.reach import Reach, gradients_readable, storages_behind

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.keys import Keys

# Time for what is deleted, and for the search, which is rare.
_LOOK_S, _PROOF_S = 0.003, 0.020
# Less is not worth the search.
_SMALL_NBYTES = 64 << 10
# Deletions of one cell, and graphs that are read for one.
_TARGETS, _GRAPHS = 12, 8
# Entries of a container among which functions are looked for.
_FEW = 16
# Ways to hold that end with one variable, or not at all: of the others it is asked who else holds it.
_ALONE = frozenset(("part", "shared"))
_LAST = re.compile(r"(\.\w+|\[[^\[\]]*\])$")
_FUNCTIONS = (FunctionType, MethodType, functools.partial, GeneratorType)


@dataclass
class _Target:
    """Something that is going to be deleted. Plain numbers only."""

    path: str
    line: int
    kind: str
    storages: dict[int, int]
    key: int
    """Number of the object; 0 for containers and tensors."""
    settled: bool
    is_module: bool
    value: int
    """Address of the object."""


@dataclass
class _Holder:
    """Who holds some of it still."""

    path: str
    how: str
    kind: str
    storages: set[int] = field(default_factory=set)


class LettingGo:
    """Looks at what a cell deletes, before and after."""

    def __init__(self, keys: Keys, reader: GraphReader) -> None:
        self._keys = keys
        self._reader = reader
        self._text: Deletions | None = None
        self._targets: list[_Target] = []
        self._replaced: list[tuple[int, str]] = []

    def foresee(self, variables: Mapping[str, Any], code: str) -> None:
        """Notes what the variables that a cell is going to delete lead to."""
        self._text, self._targets = deletions(code), []
        self._replaced = list(self._objects(variables, code))
        if self._text is not None:
            deadline = thread_time() + _LOOK_S
            for deletion in self._text.found[:_TARGETS]:
                self._targets.extend(self._target(deletion, variables, deadline))

    def facts(
        self, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any], offset: int
    ) -> tuple[DeletionFact, ...]:
        """One fact for each that is held still; none for those that are gone.

        Args:
            user: What the walk of the variables found.
            variables: The user's namespace.
            history: IPython's `Out`.
            offset: What to add to a line of the code.
        """
        targets, self._targets = self._targets, []
        text, found = self._text, list[DeletionFact]()
        # Elsewhere names are deleted to tidy up: a search of 10 ms for each would be for nothing.
        after_memory = text is not None and (text.wants_memory or text.alone)
        for target in targets if after_memory and user.complete else ():
            if target.settled and sum(target.storages.values()) >= _SMALL_NBYTES and text is not None:
                holder, alive = self._search(target, user, variables, history)
                if holder is not None:
                    fact = _fact(target, holder, alive, text, offset)
                    found.append(fact._replace(**_beside(holder, user, variables, history)))
        return tuple(found)

    def _target(self, deletion: Deletion, variables: Mapping[str, Any], deadline: float) -> Iterator[_Target]:
        value, path = _resolve(deletion.parts, variables)
        if value is None or sorts.sort_of(type(value)) == "skip":
            return
        found = walk_paths([(path, value)], deadline)
        if found.complete and (found.tensors or found.modules or found.optimizers):
            is_module = sorts.sort_of(type(value)) == "module"
            own = sorts.sort_of(type(value)) in ("module", "optimizer", "object") and kinds.is_referable(value)
            key, name = self._keys.of(value) if own else 0, kinds.class_name(value)
            yield _Target(path, deletion.line, name, storages_of(found), key, deletion.settled, is_module, id(value))

    def deleted(self) -> list[tuple[int, str]]:
        """Keys and paths of what the cell lets go of; asked before `facts`."""
        return [*self._replaced, *((target.key, target.path) for target in self._targets if target.key)]

    def _objects(self, variables: Mapping[str, Any], code: str) -> Iterator[tuple[int, str]]:
        """Objects of the notebook's own classes whose variables the cell gives another value."""
        for name in assigned(code)[:_TARGETS]:
            value: Any = variables.get(name)
            if sorts.sort_of(type(value)) == "object" and kinds.is_referable(value) and kinds.fields_of(value):
                yield self._keys.of(value), name

    def _search(
        self, target: _Target, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any]
    ) -> tuple[_Holder | None, int]:
        """The holder of most of a target that was there before, and the bytes that it holds."""
        holders: dict[str, _Holder] = {}
        left = set(target.storages)
        own = Reach(left, (history, variables), _PROOF_S)
        for path, how, kind, held in (*_named(user, target, variables), *self._by_graphs(user), *_sharing(user)):
            _claim(holders, left, _Holder(path, how, kind, held))
        if left and sum(target.storages[key] for key in left) >= _SMALL_NBYTES:
            own.wanted = set(left)
            own.search(notebooks_own(variables, history))
            left = set(own.wanted)
            for name, value in list(variables.items()):
                if not hidden(name) and own.wanted:
                    before = set(own.wanted)
                    own.search([value])
                    if held := before - own.wanted:
                        how = hook_with(value, target.value, held) or _how(value)
                        _claim(holders, left, _Holder(str(name), how, kinds.class_name(value), held))
        sizes = {path: sum(target.storages[key] for key in one.storages) for path, one in holders.items()}
        path = max(sizes, key=lambda one: sizes[one], default="")
        return (holders[path], sizes[path]) if path else (None, 0)

    def _by_graphs(self, user: Names) -> Iterator[tuple[str, str, str, set[int]]]:
        """Variables with history, with what their graphs hold; the newest first."""
        made = [(path, node) for path, tensor in user.tensors if (node := node_of(tensor)) is not None]
        for path, node in made[-_GRAPHS:]:
            walk = self._reader.walk([node], thread_time() + _LOOK_S)
            if walk is not None:
                spent = not walk.live_count
                yield path, "spent graph" if spent else "graph", "Tensor", walk.storages.keys() | walk.leaf_storages
                del walk


def _beside(holder: _Holder, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields of the fact that say who else holds it, and how much of it views show."""
    if holder.how in _ALONE or holder.how.endswith("hooks"):
        return {}
    known = (*user.tensors, *user.modules, *user.optimizers)
    held = next((thing for path, thing in known if path == holder.path), None)
    others = fellows(holder.path, held, holder.storages, variables, history)
    return {"others": others, **(_views(holder, user) if holder.how == "view" else {})}


def _views(holder: _Holder, user: Names) -> dict[str, Any]:
    """Views of it that are variables, and the bytes that copies of all its views would take."""
    kept = holder.storages
    views = [(path, one) for path, one in user.tensors if dict(storages_behind(one, gradients=False)).keys() & kept]
    sizes = {(_offset(one), layers.nbytes_of(one)) for _, one in views}
    return {"views": tuple(path for path, _ in views if path.isidentifier()), "shown_nbytes": sum(n for _, n in sizes)}


def _offset(tensor: Any) -> int:
    """Where in its storage a tensor begins; 0 for kinds that do not say."""
    try:
        return int(tensor.storage_offset())
    except Exception:  # noqa: BLE001
        return 0


def _claim(holders: dict[str, _Holder], left: set[int], holder: _Holder) -> None:
    """Notes what a holder is the first to hold."""
    found = holder.storages & left
    if found:
        left -= found
        known = holders.setdefault(holder.path, _Holder(holder.path, holder.how, holder.kind))
        known.storages |= found


def _named(user: Names, target: _Target, variables: Mapping[str, Any]) -> Iterator[tuple[str, str, str, set[int]]]:
    """Modules and tensors that the walk found."""
    for path, tensor in user.tensors:
        held = dict(storages_behind(tensor, gradients=gradients_readable()))
        if held.keys() & target.storages.keys():
            how = "alias" if id(tensor) == target.value else _how_of_view(tensor, held)
            owner = _tuple_around(path, variables) if how == "alias" else ""
            yield (owner, "tuple", "tuple", set(held)) if owner else (path, how, "Tensor", set(held))
    for path, module in user.modules:
        held = dict(_storages_below(module))
        how = "alias" if id(module) == target.value and "." in path else "part"
        yield path, how, kinds.class_name(module), set(held)


def _tuple_around(path: str, variables: Mapping[str, Any]) -> str:
    """`pair` for `pair[0]`: of a tuple no part can be deleted. Empty for parts of anything else."""
    owner = _LAST.sub("", path)
    plain = owner != path and "…" not in owner and not owner.endswith(".tensors")  # of a data set
    return owner if plain and kinds.is_a(at(variables, owner), tuple) else ""


def _sharing(user: Names) -> Iterator[tuple[str, str, str, set[int]]]:
    for path, optimizer in user.optimizers:
        tensors = optimizer_tensors(optimizer)
        held = {key for one in tensors for key, _ in storages_behind(one, gradients=gradients_readable())}
        yield path, "optimizer", kinds.class_name(optimizer), held


def _how_of_view(tensor: Any, held: dict[int, int]) -> str:
    return "view" if 0 < layers.nbytes_of(tensor) < max(held.values()) else "shared"


def _storages_below(module: Any) -> list[tuple[int, int]]:
    readable = gradients_readable()
    return [found for one in module_tensors(module) for found in storages_behind(one, gradients=readable)]


def _how(value: Any) -> str:
    """What leads to it that the walk of the variables does not go through."""
    inside = (
        [*dict.values(value)] if type(value) is dict else value if kinds.is_one_of(value, (list, tuple)) else [value]
    )
    if any(kinds.is_one_of(one, _FUNCTIONS) for one in inside[:_FEW]):
        return "function"
    if kinds.is_a(value, torch.optim.lr_scheduler.LRScheduler):
        return "schedule"
    return "object" if sorts.module_of(type(value)) == "__main__" else "other"


def _resolve(parts: tuple[str | int, ...], variables: Mapping[str, Any]) -> tuple[Any, str]:
    """The object behind a path, None if it is not there, and the path as typed; no code of the user runs."""
    path = str(parts[0])
    value = dict(variables).get(path)
    for part in parts[1:]:
        value, text = _step(value, part)
        path += text
    return value, path


def _step(value: Any, part: str | int) -> tuple[Any, str]:
    if type(part) is int:
        whole = type(value) is list and -len(value) <= part < len(value)
        return (value[part] if whole else value.get(part) if type(value) is dict else None), f"[{part}]"
    name = str(part)[1:]
    if str(part).startswith("="):
        return (value.get(name) if type(value) is dict else None), f"[{key_text(name)}]"
    fields = kinds.fields_of(value)
    inside = (fields.get(group) for group in ("_parameters", "_buffers", "_modules"))
    registered = (group.get(name) for group in inside if kinds.is_registry(group))
    return fields.get(name, next((one for one in registered if one is not None), None)), f".{name}"


def _fact(target: _Target, holder: _Holder, alive: int, text: Deletions, offset: int) -> DeletionFact:
    return DeletionFact(
        path=target.path,
        line=target.line + offset,
        kind=target.kind,
        is_module=target.is_module,
        nbytes=sum(target.storages.values()),
        held_nbytes=alive,
        holder=holder.path,
        how=holder.how,
        holder_kind=holder.kind,
        wants_memory=text.wants_memory,
        alone=text.alone,
    )
