"""State dicts: which of the user's variables follow a model that trains on, and how much a load has matched."""

from __future__ import annotations

import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import AliasFact, LoadFact, Place
from torch_inspector.observe import as_torch, kinds, loaded, private
from torch_inspector.observe.belonging import storages
from torch_inspector.observe.hand_steps import stepped_by_hand
from torch_inspector.observe.moments import Moment, is_changed, moment_of, moved_by_optimizer
from torch_inspector.observe.naming import name_in
from torch_inspector.observe.optimizer_states import OptimizerStates
from torch_inspector.observe.ran_since import Spot, way_to
from torch_inspector.observe.same_tensors import SameTensors, gives
from torch_inspector.observe.standing import Standing, standing
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Group, Names
    from torch_inspector.observe.place import CodeFile
    from torch_inspector.observe.recorder import Recorder

_is_compiling = torch.compiler.is_dynamo_compiling
# Parameters of a module that stand for all.
_PROBES = 8
# Calls remembered, groups of tensors compared with them, loads noted in one cell, entries of a state that are read.
_TAKEN, _GROUPS, _LOADS, _ENTRIES = 256, 200, 32, 2_000
_INDEX = re.compile(r"\[[^\[\]]*\]$")


@dataclass
class _Taken:
    """One call of `state_dict()`."""

    module: weakref.ref[Any]
    key: int
    place: Place
    standing: Standing | None
    moment: Moment
    way: tuple[Spot, ...]
    """The user's lines that led there."""

    def moved_by_hand(self, now: Moment, files: list[CodeFile], variables: Mapping[str, Any]) -> bool:
        """True if the parameters are not what they were, and a text since then steps them by hand."""
        changed = is_changed(self.moment, now)
        return changed and stepped_by_hand(self.way, files, variables, storages(self.module()))


class Given(NamedTuple):
    """What a load was given."""

    state: Any
    strict: bool
    itself: bool
    """True if the state is the module's own."""
    own_count: int = 0


class StateWatch:
    """Watches `state_dict()` and what is loaded; remembers across cells, weakly."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._counted = {"step": 0, "backward": 0, "grad": 0}
        """Optimizer steps and backward calls of the cells before."""
        self._latest: dict[int, _Taken] = {}
        self._given: SameTensors[_Taken] = SameTensors()
        self.loads: list[LoadFact] = []
        made = (lambda: self._recorder, lambda: self._count("step"))
        own = OptimizerStates(*made, self._note_of_optimizer, self.notes_loads)
        self.patches = (Patch(torch.nn.Module, "state_dict", self._wrap_state), *own.patches)

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self.loads = recorder, []

    def close(self) -> None:
        """Records no more."""
        self._counted = {kind: self._count(kind) for kind in self._counted}
        self._recorder = None

    def _note_of_optimizer(self, load: LoadFact) -> None:
        if self.notes_loads():
            self.loads.append(load)

    def _count(self, kind: str) -> int:
        sites = list(self._recorder.sites.values()) if self._recorder is not None else []
        return self._counted[kind] + sum(site.count for site in sites if site.kind == kind)

    def _now(self, module: Any) -> Moment:
        return moment_of(module, self._count("step"), self._count("backward") + self._count("grad"))

    # state_dict() -----------------------------------------------------------

    def _wrap_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(module, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            recorder = self._recorder
            # Parts are asked with the dictionary to fill.
            if recorder is None or args or "destination" in kwargs or _is_compiling():
                return result
            if threading.get_ident() == recorder.thread:
                with recorder.failures.guard("state_dict"), private.unseen():
                    self._note_taken(recorder, module, result, sys._getframe(1))
            return result

        return state_dict

    def _note_taken(self, recorder: Recorder, module: Any, result: Any, frame: FrameType) -> None:
        site = recorder.site("state_dict", frame, kinds.class_name(module))
        user = recorder.places.user_frame(frame)
        stands = _standing(recorder, user) if user is not None else None
        key = recorder.keys.of(module)
        taken = _Taken(weakref.ref(module), key, site.place, stands, self._now(module), way_to(recorder.places, user))
        self._latest[key] = taken
        self._given.note(result, taken)
        while len(self._latest) > _TAKEN:
            self._latest.pop(next(iter(self._latest)))

    # what variables hold ----------------------------------------------------

    def aliases(self, names: Names, variables: Mapping[str, Any], files: list[CodeFile]) -> tuple[AliasFact, ...]:
        """State dicts at paths of the user whose tensors are those of a model which has been stepped since.

        Args:
            names: What the walk of the variables found.
            variables: The user's variables.
            files: Code of the cell that is done, then of the others.
        """
        moved = {key: taken for key, taken in self._latest.items() if taken.module() is not None}
        if not moved:
            return ()
        owners = {address: key for key, taken in moved.items() for address in storages(taken.module())}
        found: dict[tuple[str, int], list[tuple[str, _Taken]]] = {}
        states: dict[int, set[int]] = {}
        for group in islice(names.groups.values(), _GROUPS):
            key = _owner_of(group, owners)
            taken = self._taken_of(group, moved[key], files) if key is not None else None
            if key is not None and taken is not None:
                found.setdefault((_INDEX.sub("", group.path), key), []).append((group.path, taken))
                states.setdefault(key, set()).add(id(group.container))
        paths = {id(module): path for path, module in names.modules}
        facts = ((self._alias(path, paths, several, files, variables), key) for (path, key), several in found.items())
        return tuple(_with_all(one, variables, states[key]) for one, key in facts)

    def _alias(
        self,
        path: str,
        paths: dict[int, str],
        several: list[tuple[str, _Taken]],
        files: list[CodeFile],
        variables: Mapping[str, Any],
    ) -> AliasFact:
        own, taken = several[0]
        takens = [one for _, one in several]
        module = taken.module()
        now = self._now(module)
        stepped = any(moved_by_optimizer(one.moment, now) for one in takens)
        by_hand = not stepped and any(one.moved_by_hand(now, files, variables) for one in takens)
        return AliasFact(
            path=path if len(several) > 1 else own,
            module=paths.get(id(module), ""),
            kind=kinds.class_name(module),
            key=taken.key,
            place=taken.place,
            count=len(takens),
            moved=stepped or by_hand,
            conditional=taken.standing is not None and taken.standing.conditional,
            saved=taken.standing is not None and taken.standing.saved,
            step_count=min(one.moment.steps for one in takens),
            by_hand=by_hand,
        )

    def _taken_of(self, group: Group, latest: _Taken, files: list[CodeFile]) -> _Taken | None:
        if known := self._given.gave(group.container):
            return known
        few = self._given.may_have_given(group.container)
        said = (one for one in (few, latest) if one is not None and gives(files, one.place, group.path))
        return next((one for one in said if one.key == latest.key), None)

    # load_state_dict() ------------------------------------------------------

    def notes_loads(self) -> bool:
        """True until so many loads of the cell are noted that more say nothing new, as in a soft update per step."""
        return len(self.loads) < _LOADS

    def gives_back_itself(self, recorder: Recorder, module: Any, state: Any, frame: FrameType) -> bool:
        """True, before a load, if the state is the module's own and the module was stepped after it was taken."""
        taken = self._latest.get(recorder.keys.of(module)) if self._latest else None
        if taken is None or not kinds.is_a(state, dict):
            return False
        taken = self._given.gave(state) or taken
        own = storages(module)
        given = [found[0] for one in _tensors(state) if (found := private.storage_of(one))]
        shared = bool(given) and all(address in own for address in given)
        now = self._now(module) if shared else taken.moment
        user = recorder.places.user_frame(frame)
        variables = user.f_globals if user is not None else {}
        return moved_by_optimizer(taken.moment, now) or taken.moved_by_hand(now, recorder.places.latest(), variables)

    def own_count(self, recorder: Recorder, module: Any, state: Any) -> int:
        """Entries, before a load, that are the module's own tensors, as they were when its state was asked for."""
        taken = self._latest.get(recorder.keys.of(module)) if self._latest else None
        if taken is None or not kinds.is_a(state, dict) or taken.moment.version != self._now(module).version:
            return 0
        own = storages(module)
        given = (one for one in islice(dict.values(state), _ENTRIES) if kinds.is_a(one, torch.Tensor))
        return sum((found := private.storage_of(one)) is not None and found[0] in own for one in given)

    def note_load(self, recorder: Recorder, module: Any, given: Given, result: Any, frame: FrameType) -> None:
        """Notes how many keys a load has matched."""
        state, strict, itself, own_count = given
        if not self.notes_loads() or not kinds.is_a(state, dict):
            return
        missing, unexpected = list(_keys_of(result))
        own_keys = loaded.own_keyed(module) if missing else ()
        entries, in_part = loaded.entries_of(state, own_keys) if missing else ((), False)
        user = recorder.places.user_frame(frame)
        self.loads.append(
            LoadFact(
                order=recorder.next_order(),
                place=recorder.places.find(user),
                module=recorder.keys.of(module),
                kind=kinds.class_name(module),
                name=name_in(user, module),
                state=name_in(user, state) or (loaded.given_text(recorder, user) if user is not None else ""),
                strict=strict,
                state_count=dict.__len__(state),
                missing=tuple(missing),
                unexpected=tuple(unexpected),
                used=user is not None and not loaded.is_unread(recorder, user),
                itself=itself,
                own_count=own_count,
                given=loaded.whole_text(recorder, user) if user is not None and missing else "",
                given_keys=loaded.keyed(state) if missing else (),
                own_keys=own_keys,
                entries=entries,
                entries_in_part=in_part,
            )
        )


def _with_all(fact: AliasFact, variables: Mapping[str, Any], states: set[int]) -> AliasFact:
    """The same with those elements of a list, tuple or dictionary, too, that other variables name."""
    path = _INDEX.sub("", fact.path)
    container: Any = variables.get(path)
    plain = container if kinds.is_one_of(container, (list, tuple)) else ()
    elements = dict.values(container) if type(container) is dict else plain
    count = len(states & set(map(id, islice(elements, _GROUPS))))
    return fact._replace(path=path, count=count) if count > fact.count else fact


def _tensors(state: Any) -> list[Any]:
    return [one for one in islice(dict.values(state), _PROBES * 2) if _has_weights(one)][:_PROBES]


def _has_weights(thing: Any) -> bool:
    return kinds.is_a(thing, torch.Tensor) and thing.is_floating_point()


def _owner_of(group: Group, owners: dict[int, int]) -> int | None:
    """The module whose weights a dictionary of plain tensors shows; None for one of parameters themselves."""
    if not kinds.is_a(group.container, dict):
        return None
    for _, tensor in group.tensors[:_PROBES]:
        if as_torch.is_floating_point(tensor):
            found = private.storage_of(tensor)
            owned = owners.get(found[0]) if found is not None and not kinds.is_a(tensor, torch.nn.Parameter) else None
            if owned is None or as_torch.requires_grad(tensor):
                return None
            return owned
    return None


def _keys_of(result: Any) -> Iterator[list[str]]:
    """Missing and unexpected keys as `load_state_dict()` returns them."""
    parts = tuple.__iter__(result) if kinds.is_a(result, tuple) else iter(())
    for _ in range(2):
        keys: Any = next(parts, [])
        yield [key for key in keys if type(key) is str] if type(keys) is list else []


def _standing(recorder: Recorder, frame: FrameType) -> Standing | None:
    file = recorder.places.file_of(frame)
    return standing(file.tree, frame.f_lineno) if file is not None and file.tree is not None else None
