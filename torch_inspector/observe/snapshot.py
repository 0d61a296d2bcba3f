"""One look at everything the user can name, after a cell or on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import (
    AliasFact,
    Cell,
    CircleFact,
    ModuleFact,
    OptimizerFact,
    RepeatedFact,
    Snapshot,
    TensorFact,
    UnlistedFact,
)
from torch_inspector.observe import as_torch, layers, namespace, pinned, private, unlisted
from torch_inspector.observe.attributes import Attributes
from torch_inspector.observe.circles import Circles
from torch_inspector.observe.described import module_fact, optimizer_fact, still_true, tensor_fact, with_gradients
from torch_inspector.observe.generations import Generations
from torch_inspector.observe.groups import groups_of, held_by
from torch_inspector.observe.history import OutputHistory, node_of, storages_of
from torch_inspector.observe.hooked_twice import HookCounts
from torch_inspector.observe.hooks import Hooks
from torch_inspector.observe.letting_go import LettingGo
from torch_inspector.observe.memory import memory_facts
from torch_inspector.observe.repeated import repeated_facts
from torch_inspector.observe.results import results
from torch_inspector.observe.retained import RetainedGraphs
from torch_inspector.observe.tracebacks import Tracebacks
from torch_inspector.observe.uncollected import uncollected
from torch_inspector.observe.unsaved import Unsaved
from torch_inspector.observe.values import ValueWatch

if TYPE_CHECKING:
    from torch_inspector.failures import Failures
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.keys import Keys
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.place import Places
    from torch_inspector.observe.states import StateWatch

# Facts of one kind per snapshot; the rest is counted as "at least".
_TENSORS, _MODULES = 500, 200
# The walk of the variables after a cell may always take so long.
_WALK_S = 0.002
# What a cell may cost by default. What the budget has beyond that is a share of a long cell: the walk may have it too.
_BUDGET_S = 0.020
_PARTS = (
    "tensors",
    "modules",
    "optimizers",
    "pins",
    "graphs",
    "holders",
    "tracebacks",
    "elders",
    "hooks",
    "circles",
    "deleted",
    "unlisted",
    "repeated",
    *("spoiled_weights", "extremes", "series", "results"),
    *("attributes", "unsaved", "hook_counts", "aliases"),
)


@dataclass
class Look:
    """What to look at, and how long."""

    names: Mapping[str, Any]
    """The user's variables."""
    history: Mapping[Any, Any]
    """IPython's `Out`; empty elsewhere."""
    deadline: float
    """The `thread_time()` time at which to stop: what a look costs is the same on a busy machine."""
    since: int = 0
    """Number of the first autograd node of the cell."""
    full: bool = False
    """True to list parameters of every module, not only of those that were called."""
    called: frozenset[int] = frozenset()
    """Keys of modules that were called in the cell."""
    code: str = ""
    """The Python of the cell."""
    line_offset: int = 0


class Snapshots:
    """Takes snapshots and remembers what makes the next one cheaper."""

    def __init__(
        self, keys: Keys, ledger: Ledger, reader: GraphReader, failures: Failures, places: Places | None = None
    ) -> None:
        self.values = ValueWatch(ledger)
        """The one that watches the cells, where there is one."""
        self._keys = keys
        self._ledger = ledger
        self._reader = reader
        self._failures = failures
        self._graphs = RetainedGraphs(reader)
        self._history = OutputHistory(reader)
        self._tracebacks = Tracebacks(reader, places) if places is not None else None
        self._attributes = Attributes(places)
        self._unsaved = Unsaved(keys, places)
        self._hook_counts = HookCounts()
        self.states: StateWatch | None = None
        """Knows which state dicts were taken; None where nobody watches."""
        self._generations = Generations(keys)
        self._hooks = Hooks(keys, places)
        self._letting_go = LettingGo(keys, reader)
        self._circles = Circles(keys)
        self._places = places
        self._listing: set[int] = set()
        """Numbers of modules that keep layers in plain containers."""
        self._numbers: set[int] = set()
        """Numbers of the modules that were found so far."""
        self._known: dict[tuple[str, int], TensorFact] = {}

    def foresee(self, names: Mapping[str, Any], cell: Cell) -> None:
        """Looks at what a cell is going to delete."""
        with private.unseen():
            self._letting_go.foresee(names, cell.code)

    def take(self, look: Look, cell: int | None) -> Snapshot:
        """Everything that holds now, as plain facts."""
        with uncollected(), private.unseen():
            return self._take(look, cell)

    def _walk(self, look: Look) -> namespace.Names:
        if look.full:
            return namespace.walk_names(_visible(look.names), look.deadline)
        deadline = max(thread_time() + _WALK_S, look.deadline - _BUDGET_S)
        return namespace.walk_names(_visible(look.names), deadline, sampling=True)

    def _take(self, look: Look, cell: int | None) -> Snapshot:
        names = self._walk(look)
        new = self._new(names)
        parts: dict[str, Any] = dict.fromkeys(_PARTS, ())
        for part, make in (
            ("modules", lambda: self._modules(names, look)),
            ("optimizers", lambda: self._optimizers(names, full=look.full or _only_infers(look))),
            ("tensors", lambda: self._tensors(names, cell, look)),
            ("pins", lambda: pinned.pins(names, parts["tensors"])),
            ("graphs", lambda: self._graph_facts(names, look)),
            ("holders", lambda: self._holders(names, look)),
            ("tracebacks", lambda: self._traceback_facts(names, look, cell)),
            ("elders", lambda: self._generations.facts(names, look.names, look.history, look.code)),
            ("hooks", lambda: self._hooks.facts(names, look.names, look.history, look.called)),
            ("circles", lambda: self._circles_now(names, look)),
            ("deleted", lambda: self._letting_go.facts(names, look.names, look.history, look.line_offset)),
            ("spoiled_weights", lambda: self.values.spoiled_weights(names, look.called, self._keys.of)),
            ("extremes", lambda: self.values.halves(names)),
            ("series", lambda: self.values.series(look.names, look.code)),
            ("results", lambda: results(names, look, cell, self._reader, _new_ones(parts, cell))),
            ("repeated", lambda: self._repeated(new)),
            ("unlisted", lambda: self._unlisted(names, new, look)),
            ("attributes", lambda: self._attributes.facts(names, look.code)),
            ("unsaved", lambda: self._unsaved.facts(names, self.states, look.called)),
            ("hook_counts", lambda: self._hook_counts.facts(names, look.code)),
            ("aliases", lambda: self._aliases(names, look)),
        ):
            if not self._failures.gave_up(part):
                with self._failures.guard(part):
                    parts[part] = make()
        complete = names.complete and len(names.tensors) <= _TENSORS
        return Snapshot(memory=memory_facts(torch, full=look.full), complete=complete, **parts)

    def _aliases(self, names: namespace.Names, look: Look) -> tuple[AliasFact, ...]:
        files = self._places.latest() if self._places is not None else []
        return self.states.aliases(names, look.names, files) if self.states is not None else ()

    def _new(self, names: namespace.Names) -> list[tuple[str, Any]]:
        """Modules that no look has found before."""
        new = [one for one in names.modules[:_MODULES] if self._keys.of(one[1]) not in self._numbers]
        self._numbers.update(self._keys.of(module) for _, module in new)
        return new

    def _repeated(self, new: list[tuple[str, Any]]) -> tuple[RepeatedFact, ...]:
        """Lists of one and the same layer in new modules that have not been called so far."""
        return repeated_facts([one for one in new if self._ledger.is_new_here(self._keys.of(one[1]))])

    def _unlisted(self, names: namespace.Names, new: list[tuple[str, Any]], look: Look) -> tuple[UnlistedFact, ...]:
        """Layers in plain containers of modules that are new or were called."""
        # A module that has none when it is built will hardly get some later.
        fresh = {id(module) for _, module in new}
        wanted = self._listing & look.called
        again = [(path, m) for path, m in names.modules if id(m) not in fresh and self._keys.of(m) in wanted]
        if not new and not again:
            return ()
        held = self._ledger.held_keys().union(*(held_by(optimizer) for _, optimizer in names.optimizers))
        first = tuple(unlisted.unlisted_facts(new, names, held))
        self._listing.update(self._keys.of(m) for path, m in new if any(f.module.startswith(path) for f in first))
        later = unlisted.unlisted_facts(again, names, held)
        return (*first, *(fact._replace(new=False) for fact in later))

    def _tensors(self, names: namespace.Names, cell: int | None, look: Look) -> tuple[TensorFact, ...]:
        facts: dict[tuple[str, int], TensorFact] = {}
        for path, tensor in names.tensors[:_TENSORS]:
            key = (path, id(tensor))
            known = self._known.get(key)
            if known is not None and not look.full and still_true(known, tensor):
                facts[key] = known
                continue
            with self._failures.guard("tensor"):
                facts[key] = tensor_fact(path, tensor, (known and known.first_seen_cell) or cell)
        self._known = facts
        return tuple(facts.values())

    def _modules(self, names: namespace.Names, look: Look) -> tuple[ModuleFact, ...]:
        facts, infers = [], _only_infers(look)
        parts = look.called - {self._keys.of(module) for _, module in names.modules[:_MODULES]}
        for path, module in names.modules[:_MODULES]:
            key = self._keys.of(module)
            with self._failures.guard("module"):
                full = look.full or key in look.called or bool(parts and self._has_any(module, parts))
                fact = module_fact(path, module, key, full=full, trained=key in self._ledger.trained)
                facts.append(with_gradients(fact, module) if infers and key in look.called else fact)
        return tuple(facts)

    def _has_any(self, module: Any, parts: frozenset[int]) -> bool:
        """True if some of these are below a module, whose own methods may have called them."""
        return any(self._keys.known(one) in parts for _, one in layers.walk_modules(module))

    def _optimizers(self, names: namespace.Names, *, full: bool) -> tuple[OptimizerFact, ...]:
        facts = []
        for path, optimizer in names.optimizers:
            if groups_of(optimizer):
                with self._failures.guard("optimizer"):
                    facts.append(optimizer_fact(path, optimizer, self._keys.of(optimizer), full=full))
        return tuple(facts)

    def _circles_now(self, names: namespace.Names, look: Look) -> tuple[CircleFact, ...]:
        found = self._circles.facts(names, look.called, self._letting_go.deleted())
        if found or self._places is None:  # the same tensors would be told twice
            return found
        cells = [file.tree for file in self._places.latest() if file.tree is not None]
        found = self._circles.unnamed(names, look.names, look.code, cells, look.deadline)
        return tuple(one._replace(made_at=(one.made_at or 0) + look.line_offset) for one in found)

    def _graph_facts(self, names: namespace.Names, look: Look) -> tuple[Any, ...]:
        usable = _with_sound_graphs(names)
        if not any(node_of(tensor) is not None for _, tensor in usable.tensors):
            return ()
        held = lru_cache(maxsize=1)(lambda: set(storages_of(usable)))
        return self._graphs.facts(usable, held, look.since, look.deadline)

    def _holders(self, names: namespace.Names, look: Look) -> tuple[Any, ...]:
        if not look.history:
            return ()
        return self._history.facts(look.history, look.names, names, look.deadline)

    def _traceback_facts(self, names: namespace.Names, look: Look, cell: int | None) -> tuple[Any, ...]:
        if self._tracebacks is None:
            return ()
        return self._tracebacks.facts(look.names, look.history, names, cell)


def _new_ones(parts: Mapping[str, Any], cell: int | None) -> frozenset[str]:
    """Paths of the tensors that were not there before a cell."""
    return frozenset(fact.path for fact in parts["tensors"] if fact.first_seen_cell == cell)


def _only_infers(look: Look) -> bool:
    """True after a cell that called a module and made no autograd node."""
    return bool(look.called) and private.sequence_number() == look.since


def _with_sound_graphs(names: namespace.Names) -> namespace.Names:
    """The same without views that an in-place operation has made invalid: asking for their node raises."""
    broken = {id(tensor) for _, tensor in names.tensors if _is_broken(tensor)}
    if not broken:
        return names
    tensors = [one for one in names.tensors if id(one[1]) not in broken]
    groups = {key: _without(group, broken) for key, group in names.groups.items()}
    of_variables = [_without(group, broken) for group in names.of_variables]
    return replace(names, tensors=tensors, groups=groups, of_variables=of_variables)


def _without(group: namespace.Group, broken: set[int]) -> namespace.Group:
    return replace(group, tensors=[one for one in group.tensors if id(one[1]) not in broken])


def _is_broken(tensor: Any) -> bool:
    try:
        return as_torch.grad_fn(tensor) is None and False
    except RuntimeError:
        return True


def _visible(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in dict(names).items() if not namespace.hidden(name)]
