"""Parameters that get gradients from step to step and are in no optimizer: whose they are, and how that came about.

Holds no tensor. Whether somebody changes them by hand is told by version counters and, on the CPU, a few values.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import StepFact, UnheldFact, UnlistedFact
from torch_inspector.observe import as_torch, kinds, layers, private
from torch_inspector.observe.bare import bare_weights
from torch_inspector.observe.groups import held_by, parameters_of
from torch_inspector.observe.lacking import Own
from torch_inspector.observe.last_look import LastLook
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.namespace import Names, hidden, walk_names
from torch_inspector.observe.naming import outer_name
from torch_inspector.observe.sampled import Values, some_values
from torch_inspector.observe.unlisted import unlisted_facts
from torch_inspector.observe.versions import version_of

if TYPE_CHECKING:
    from torch_inspector.observe.graph import Walk
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.optimizer_record import OptimizerRecord
    from torch_inspector.observe.recorder import Recorder

Mark = tuple[int, int, Values]
"""Version, address of the data and some values of a parameter; no values where they are not read."""

# Parameters that are followed: 10 µs for one.
_FOLLOWED = 64
# Backward calls that must have found a parameter unheld and unchanged before the names are looked up.
_TWICE = 2
# Optimizers of one cell whose modules are noted when they are made.
_MADE = 20
# Frames of the user, wall time that other programs may take, and processor time, for the search of names.
_FRAMES, _SEARCH_S = 4, 0.002
_NAMES_KEPT = 8
# Searches for one optimizer in one cell; a second one only where the first has found nothing.
_SEARCHES = 2


def marks_of(walk: Walk, held: frozenset[int]) -> dict[int, Mark]:
    """The parameters among the leaves of a graph that are not held, by address."""
    found: dict[int, Mark] = {}
    for node in walk.nodes.values():
        if not private.is_leaf_node(node) or len(found) >= _FOLLOWED:
            continue
        leaf = node.variable
        if id(leaf) not in held and kinds.is_a(leaf, torch.nn.Parameter):
            found[id(leaf)] = _mark(leaf)
    return found


def bare_marks(walk: Walk, held: frozenset[int]) -> dict[int, Mark]:
    """The same of plain tensors that the graph uses as weights."""
    return {id(leaf): _mark(leaf) for leaf in bare_weights(walk, held)}


def _mark(leaf: torch.Tensor) -> Mark:
    return version_of(leaf), as_torch.data_ptr(leaf), some_values(leaf)


def _is_new(before: Mark | None, now: Mark) -> bool:
    """True for a parameter that was not there, or another one at its address: changed, and yet no newer version."""
    return before is None or (now != before and now[0] <= before[0])


class UnheldWatch:
    """Follows the unheld parameters of one cell."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._recorder: Recorder | None = None
        self._marks: dict[int, Mark] = {}
        self._seen: dict[int, int] = {}
        self._moved: set[int] = set()
        self._searches: dict[int, int] = {}
        self._made = 0
        self._last = LastLook()
        self.fresh: list[int] = []
        """For each backward call after the first, how many unheld parameters the one before had not got."""
        self.facts: list[UnheldFact] = []

    def open(self, recorder: Recorder) -> None:
        """Begins to follow those of a cell."""
        self._recorder, self.facts, self.fresh, self._made = recorder, [], [], 0
        for known in (self._marks, self._seen, self._moved, self._searches):
            known.clear()

    def note(self, marks: dict[int, Mark], bare: dict[int, Mark]) -> None:
        """Notes what one backward call reaches and nobody holds; what has changed meanwhile is somebody's to train."""
        if self._seen:
            self.fresh.append(sum(_is_new(self._marks.get(key), mark) for key, mark in marks.items()))
        for key, mark in (marks | bare).items():
            if self._marks.setdefault(key, mark) != mark:
                self._moved.add(key)
            self._seen[key] = self._seen.get(key, 0) + 1
            self._marks[key] = mark
        if self.facts and self._moved:
            self.facts = [fact for fact in self.facts if not fact.keys & self._moved]

    def note_made(self, record: OptimizerRecord, frame: FrameType) -> None:
        """Notes all parameters of the modules of which an optimizer was given some."""
        self.facts = [one for one in self.facts if not one.keys & self._taken_by(record)]
        recorder, self._made = self._recorder, self._made + 1
        user = recorder.places.user_frame(frame) if recorder is not None else None
        if recorder is None or user is None or self._made > _MADE:
            return
        own = record.keys()
        with private.unseen():
            for module in _modules_in(user):
                parameters = [p for _, p in layers.walk_parameters(module)]
                every = frozenset(map(id, parameters))
                if every & own:
                    frozen = frozenset(id(p) for p in parameters if not as_torch.requires_grad(p))
                    record.then[recorder.keys.of(module)] = every, frozen

    def _taken_by(self, record: OptimizerRecord) -> set[int]:
        """Those of a new optimizer that nobody held so far; another tensor may be at the address of one by now."""
        with private.unseen():
            own = (p for group in parameters_of(record.ref()) for p in group)
            return {id(p) for p in own if id(p) in self._marks and self._is_as_it_was(p)}

    def note_step(self, record: OptimizerRecord, step: StepFact, frame: FrameType) -> None:
        """Looks for names once a step follows backward calls that reached the optimizer's and unheld parameters."""
        recorder = self._recorder
        reached = record.leaf_keys & self._seen.keys() - self._moved
        again = frozenset(key for key in reached if self._seen[key] >= _TWICE)
        if recorder is None or not again or self._searches.get(record.key, 0) >= _SEARCHES:
            return
        if not record.leaves_complete or not step.parameter_keys & step.leaf_keys:
            return
        missing = again - self._ledger.held_keys()
        if missing and recorder.budget.open():
            self._searches[record.key] = self._searches.get(record.key, 0) + 1
            begun, count = thread_time(), len(self.facts)
            self._name(recorder, record, step, frame, set(missing))
            recorder.budget.charge(begun)
            if len(self.facts) > count:
                self._searches[record.key] = _SEARCHES
                self._last.note(self.facts[count:], self._ledger, recorder.places.user_frame(frame))

    def left(self) -> list[UnheldFact]:
        """What is still true at the end of the cell."""
        facts, self.facts = self.facts, []
        if facts and self._recorder is not None:
            with self._recorder.failures.guard("unheld"), private.unseen():
                self.facts = self._last.still_true(facts, self._ledger, self._is_as_it_was)
        return self.facts

    def _is_as_it_was(self, tensor: torch.Tensor) -> bool:
        return self._marks.get(id(tensor)) == _mark(tensor)

    def _name(
        self, recorder: Recorder, record: OptimizerRecord, step: StepFact, frame: FrameType, missing: set[int]
    ) -> None:
        for names in _names_around(recorder, frame):
            held = self._ledger.held_keys().union(*(held_by(optimizer) for _, optimizer in names.optimizers))
            missing -= held
            roots = _Roots(names, held)
            for path, module in names.modules:
                own = Own(path, module, [(name, p) for name, p in layers.walk_parameters(module) if id(p) in missing])
                if own.parameters:
                    missing -= own.keys()
                    fact = self._fact(step, own, held)._replace(late=self._late(record, own.keys()))
                    self.facts.append(fact._replace(unlisted=roots.unlisted(fact.keys)))
            for path, tensor in names.tensors:
                if id(tensor) in missing:
                    missing.discard(id(tensor))
                    self.facts.append(self._variable(step, path, tensor))
            if not missing:
                return

    def _fact(self, step: StepFact, own: Own, held: frozenset[int]) -> UnheldFact:
        path, module, _ = own
        keys = own.keys()
        names = [name for name, p in layers.walk_parameters(module) if id(p) in held]
        parts, single = own.parts()
        return UnheldFact(
            order=step.order,
            place=step.place,
            optimizer=step.optimizer,
            module=path,
            kind=kinds.class_name(module),
            names=tuple(f"{path}.{name}" for name, _ in own.parameters[:_NAMES_KEPT]),
            keys=keys,
            held_count=len(names),
            held_parts=len({name.partition(".")[0] for name in names}),
            training=all(kinds.fields_of(one).get("training") is True for one in _owners(module, keys)),
            settled=bool(keys & self._ledger.settled),
            compared=all(self._marks[key][2] is not None for key in keys),
            parts=parts,
            single=single,
        )

    def _variable(self, step: StepFact, path: str, tensor: torch.Tensor) -> UnheldFact:
        key = id(tensor)
        return UnheldFact(
            order=step.order,
            place=step.place,
            optimizer=step.optimizer,
            module="",
            kind=kinds.class_name(tensor),
            names=(path,),
            keys=frozenset([key]),
            settled=key in self._ledger.settled,
            compared=self._marks[key][2] is not None,
        )

    def _late(self, record: OptimizerRecord, keys: frozenset[int]) -> str:
        """What has happened to the module since the optimizer was made, if that is why it lacks them."""
        for number, (every, frozen) in record.then.items():
            module = self._recorder.keys.live(number) if self._recorder is not None else None
            now = frozenset(id(p) for _, p in layers.walk_parameters(module)) if module is not None else frozenset()
            if keys <= now & frozen:
                return "unfrozen"
            # Somebody who took all that there was did not mean to leave out what came later.
            if keys <= now - every and every - frozen <= record.keys():
                return "added"
        return ""


class _Roots:
    """The plain containers in some modules, looked for once."""

    def __init__(self, names: Names, held: frozenset[int]) -> None:
        self._names, self._held = names, held
        self._facts: list[UnlistedFact] | None = None

    def unlisted(self, keys: frozenset[int]) -> UnlistedFact | None:
        """The container that some parameters are in."""
        if self._facts is None:
            self._facts = list(unlisted_facts(self._names.modules, self._names, self._held))
        return next((fact for fact in self._facts if fact.trainable_keys & keys), None)


def _outside(frame: FrameType, name: str, value: Any) -> str:
    """What the notebook calls an object that a method calls `self`."""
    return (outer_name(frame, value) if name == "self" else "") or name


def _owners(module: Any, keys: frozenset[int]) -> Iterator[Any]:
    """The module itself and the layers in it that own some parameters."""
    yield module
    for _, one in layers.walk_modules(module):
        parameters = kinds.fields_of(one).get("_parameters") or {}
        if any(id(p) in keys for p in parameters.values()):
            yield one


def _modules_in(frame: FrameType) -> list[Any]:
    """Modules that the code of a frame names, and those in the fields of its `self`."""
    code, found = frame.f_code, {}
    with locals_of(frame) as values:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names):
            thing = values.get(name, frame.f_globals.get(name))
            if thing is not None and kinds.is_a(thing, torch.nn.Module):
                found[id(thing)] = thing
        owner = values.get("self")
        for thing in kinds.fields_of(owner).values() if owner is not None else ():
            if kinds.is_a(thing, torch.nn.Module):
                found[id(thing)] = thing
    return list(found.values())


def _names_around(recorder: Recorder, frame: FrameType) -> Iterator[Names]:
    """What the variables of the user's frames lead to, from the innermost frame outwards, then the notebook's own."""
    here = recorder.places.user_frame(frame)
    for _ in range(_FRAMES):
        if here is None:
            return
        with locals_of(here) as values:
            variables = [
                (_outside(here, name, value), value) for name, value in list(values.items()) if not hidden(name)
            ]
        yield walk_names(variables, thread_time() + _SEARCH_S, sampling=True)
        if here.f_code.co_name != "<module>" and here.f_back is None:
            return
        outer, here = here, recorder.places.user_frame(here.f_back)
    variables = [(name, value) for name, value in list(outer.f_globals.items()) if not hidden(name)]
    yield walk_names(variables, thread_time() + _SEARCH_S, sampling=True)
