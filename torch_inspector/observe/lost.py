"""Where the text of the cells loses the history of a loss, asked only where a backward call shows that it was lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch_inspector.facts import BackwardFact, CutFact, ErrorFact, ForwardFact, Place, StepFact
from torch_inspector.failures import Failures
from torch_inspector.observe import private
from torch_inspector.observe.added_numbers import added_numbers
from torch_inspector.observe.by_hand import moves_by_hand
from torch_inspector.observe.constant_gradients import constant_gradients
from torch_inspector.observe.cuts import cuts_at
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.ledger import Ledger
from torch_inspector.observe.other_uses import is_used_apart
from torch_inspector.observe.owned import owners
from torch_inspector.observe.parts import Parts, learning
from torch_inspector.observe.place import Places
from torch_inspector.observe.texts import Texts

# How torch begins to say that a loss has no history.
_WITHOUT_HISTORY = "element 0 of tensors does not require grad"
# Lines that call `backward()` whose losses are followed back through the text.
_BACKWARD_LINES = 3
# Names of models that are remembered.
_MODELS = 200


class LostHistories:
    """Follows losses back through the code of the user's cells."""

    def __init__(self, places: Places, keys: Keys, ledger: Ledger, failures: Failures) -> None:
        self._places, self._keys, self._ledger, self._failures = places, keys, ledger, failures
        self._behind: tuple[frozenset[int], Mapping[Place, None]] = (frozenset(), {})
        """Parameters that were stepped and not reached, and the backward calls of the same cell."""
        self._models: dict[str, str] = {}
        self._losses: dict[str, str] = {}
        """What the code calls the modules that were called, and their classes."""

    def remember(self, forwards: Iterable[ForwardFact]) -> None:
        """Notes what the code calls its models, and modules without parameters, as losses are."""
        for known in (self._models, self._losses):
            if len(known) > _MODELS:
                known.clear()
        for call in forwards:
            if call.name:
                (self._models if call.parameter_keys else self._losses)[call.name] = call.kind

    def cuts(
        self, forwards: tuple[ForwardFact, ...], backwards: tuple[BackwardFact, ...], steps: tuple[StepFact, ...]
    ) -> tuple[CutFact, ...]:
        """Where the history was lost, if a backward call did not reach parameters of a model that was to be trained."""
        calls = [one for one in backwards if not one.is_grad_call]
        reached = frozenset[int]().union(*(one.witness.leaf_keys for one in calls if one.witness is not None))
        self._behind = (frozenset(), {})
        missing = frozenset[int]().union(*(step.parameter_keys for step in steps)) - reached
        if reached and missing:
            self._behind = missing, dict.fromkeys(one.place for one in calls)
        wanted = [one for one in forwards if one.parameter_keys & missing and one.trainable_count]
        if not calls or not (wanted or any(one.from_leaf for one in calls)):
            return ()
        with self._failures.guard("cuts"), private.unseen():
            optimizers = [one for record in self._ledger.live() if (one := record.ref()) is not None]
            called = [(one, self._keys.live(one.module)) for one in wanted]
            parts = Parts(called, missing - learning(optimizers))
            return self._cuts_behind(dict.fromkeys(one.place for one in calls), parts)
        return ()

    def severed(self, names: Mapping[str, Any]) -> tuple[CutFact, ...]:
        """The same for modules of which methods were called, not they themselves, and for parameters outside of any."""
        missing, places = self._behind
        if not missing:
            return ()
        with self._failures.guard("severed"), private.unseen():
            optimizers = [one for record in self._ledger.live() if (one := record.ref()) is not None]
            missing = missing - learning(optimizers)
            found = owners(names, missing, self._keys) if missing else None
            if found is not None and (found.modules or found.tensors):
                cuts = self._cuts_behind(places, Parts(found.modules, missing, found.tensors))
                return tuple(cut for cut in cuts if cut.keys)
        return ()

    def _meant(self, cut: CutFact) -> CutFact:
        """The cut, without the part where the text moves that by hand: it is to get no gradient."""
        path = cut.path or cut.part or cut.sources[0]
        name = next((one for one in reversed(re.split(r"[.\[\]]+", path)) if one and not one.isdigit()), "")
        latest = self._places.latest()
        trees = (file.tree for file in latest if file.tree is not None)
        if cut.keys and moves_by_hand(trees, (file.code for file in latest), name):
            return cut._replace(module=0, part="", keys=frozenset(), path="")
        return cut._replace(elsewhere=True) if cut.keys and is_used_apart(cut.place, name, latest) else cut

    def _cuts_behind(self, places: Mapping[Place, None], parts: Parts) -> tuple[CutFact, ...]:
        names, latest = {**parts.kinds(), **self._models}, self._places.latest()
        found: dict[CutFact, tuple[Place, ...]] = {}
        for place in list(places)[:_BACKWARD_LINES]:
            for cut in cuts_at(place, latest, names.items(), parts.raw(), self._losses).facts:
                found[cut] = (*found.get(cut, ()), place)
        return tuple(self._meant(parts.kept_by(cut))._replace(backwards=lines) for cut, lines in found.items())

    def constants(self, backwards: tuple[BackwardFact, ...]) -> tuple[CutFact, ...]:
        """Gradients of inputs that a loss takes as numbers, where a call asked for such."""
        return self._constants_behind(dict.fromkeys(one.place for one in backwards if not one.is_grad_call), backwards)

    def _constants_behind(
        self, places: Mapping[Place, None], backwards: tuple[BackwardFact, ...]
    ) -> tuple[CutFact, ...]:
        plain = frozenset(one.place for one in backwards if one.plain_inputs)
        if not plain or not places:
            return ()
        with self._failures.guard("constants"):
            texts = Texts(self._places.latest(), self._models, losses=self._losses)
            found = [one for place in list(places)[:_BACKWARD_LINES] for one in constant_gradients(place, texts, plain)]
            return tuple(dict.fromkeys(found))
        return ()

    def added(self, backwards: tuple[BackwardFact, ...]) -> tuple[CutFact, ...]:
        """Terms without history of losses that have one."""
        places = dict.fromkeys(one.place for one in backwards if not one.is_grad_call and not one.from_leaf)
        if not places or not self._models:
            return ()
        with self._failures.guard("added"):
            texts = Texts(self._places.latest(), self._models, losses=self._losses)
            found: dict[CutFact, tuple[Place, ...]] = {}
            for place in list(places)[:_BACKWARD_LINES]:
                for cut in added_numbers(place, texts):
                    found[cut] = (*found.get(cut, ()), place)
            return tuple(cut._replace(backwards=lines) for cut, lines in found.items())
        return ()

    def explained(self, fact: ErrorFact, backwards: tuple[BackwardFact, ...]) -> ErrorFact:
        """An error with where the history of its loss was lost, if torch says that there is none."""
        if not fact.message.startswith(_WITHOUT_HISTORY):
            return fact
        with self._failures.guard("cuts"):
            found = cuts_at(fact.place, self._places.latest(), self._models.items(), (), self._losses)
            constants = self._constants_behind({fact.place: None}, backwards)
            return replace(fact, cuts=found.facts, root=found.root, constants=constants)
        return fact
