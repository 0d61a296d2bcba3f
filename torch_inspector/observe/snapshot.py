"""One look at everything the user can name, after a cell or on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ModuleFact, OptimizerFact, Snapshot, TensorFact
from torch_inspector.observe import layers, namespace, private
from torch_inspector.observe.history import history_facts, storages_of
from torch_inspector.observe.ledger import parameters_of
from torch_inspector.observe.memory import memory_facts
from torch_inspector.observe.retained import RetainedGraphs

if TYPE_CHECKING:
    from torch_inspector.failures import Failures
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.keys import Keys
    from torch_inspector.observe.ledger import Ledger

# Facts of one kind per snapshot; the rest is counted as "at least".
_TENSORS = 500
_MODULES = 200


@dataclass
class Look:
    """What to look at, and how long."""

    names: Mapping[str, Any]
    """The user's variables."""
    history: Mapping[Any, Any]
    """IPython's `Out`; empty elsewhere."""
    deadline: float
    since: int = 0
    """Number of the first autograd node of the cell."""
    full: bool = False
    """True to list parameters of every module, not only of those that were called."""
    called: frozenset[int] = frozenset()
    """Keys of modules that were called in the cell."""


class Snapshots:
    """Takes snapshots and remembers what makes the next one cheaper."""

    def __init__(self, keys: Keys, ledger: Ledger, reader: GraphReader, failures: Failures) -> None:
        self._keys = keys
        self._ledger = ledger
        self._reader = reader
        self._failures = failures
        self._graphs = RetainedGraphs(reader)
        self._first_seen: dict[tuple[str, int], int] = {}

    def take(self, look: Look, cell: int | None) -> Snapshot:
        """Everything that holds now, as plain facts."""
        with private.unseen():
            return self._take(look, cell)

    def _take(self, look: Look, cell: int | None) -> Snapshot:
        names = namespace.walk_names(_visible(look.names), look.deadline)
        parts: dict[str, tuple[Any, ...]] = dict.fromkeys(("tensors", "modules", "optimizers", "graphs", "holders"), ())
        for part, make in (
            ("modules", lambda: self._modules(names, look)),
            ("optimizers", lambda: tuple(self._optimizer(path, one) for path, one in names.optimizers)),
            ("tensors", lambda: self._tensors(names, cell, look.deadline)),
            ("graphs", lambda: self._graph_facts(names, look)),
            ("holders", lambda: self._holders(names, look)),
        ):
            if not self._failures.gave_up(part):
                with self._failures.guard(part):
                    parts[part] = make()
        complete = names.complete and len(names.tensors) <= _TENSORS and perf_counter() <= look.deadline
        return Snapshot(memory=memory_facts(torch), complete=complete, **parts)

    def _tensors(self, names: namespace.Names, cell: int | None, deadline: float) -> tuple[TensorFact, ...]:
        facts: list[TensorFact] = []
        seen: dict[tuple[str, int], int] = {}
        for path, tensor in names.tensors[:_TENSORS]:
            if perf_counter() > deadline:
                break
            key = (path, id(tensor))
            seen[key] = self._first_seen.get(key, cell or 0)
            with self._failures.guard("tensor"):
                facts.append(_tensor_fact(path, tensor, seen[key]))
        self._first_seen = seen
        return tuple(facts)

    def _modules(self, names: namespace.Names, look: Look) -> tuple[ModuleFact, ...]:
        facts = []
        for path, module in names.modules[:_MODULES]:
            key = self._keys.of(module)
            with self._failures.guard("module"):
                facts.append(self._module(path, module, key, full=look.full or key in look.called))
        return tuple(facts)

    def _module(self, path: str, module: Any, key: int, *, full: bool) -> ModuleFact:
        fields = layers.fields_of(module)
        training = fields.get("training") is True
        if not full:
            return ModuleFact(key, path, type(module).__name__, training, trained=key in self._ledger.trained)
        inside = layers.look_inside(module)
        parameters = list(layers.walk_parameters(module))
        return ModuleFact(
            key=key,
            path=path,
            kind=type(module).__name__,
            training=training,
            awake=inside.awake,
            asleep=inside.asleep,
            frozen_asleep=inside.frozen_asleep,
            devices=tuple(sorted({str(p.device) for _, p in parameters})),
            parameter_count=sum(layers.number_of(p) for _, p in parameters),
            trainable_count=sum(layers.number_of(p) for _, p in parameters if p.requires_grad),
            parameter_nbytes=sum(layers.nbytes_of(p) for _, p in parameters),
            parameter_keys=frozenset(id(p) for _, p in parameters),
            parameter_names=tuple((id(p), name) for name, p in parameters),
            softmax_layers=tuple(_path_in(module, path, name) for name in layers.softmax_layers(module)),
            trained=key in self._ledger.trained,
        )

    def _optimizer(self, path: str, optimizer: Any) -> OptimizerFact:
        key = self._keys.of(optimizer)
        self._ledger.record(key, optimizer)
        groups = parameters_of(optimizer)
        rates: list[Any] = [g.get("lr") for g in vars(optimizer).get("param_groups") or [] if type(g) is dict]
        state = [t for entry in _states(optimizer) for t in entry if issubclass(type(t), torch.Tensor)]
        parameters = [p for group in groups for p in group]
        return OptimizerFact(
            key=key,
            path=path,
            kind=type(optimizer).__name__,
            learning_rate=float(rates[0]) if rates and type(rates[0]) in (int, float) else None,
            parameter_keys=frozenset(id(p) for p in parameters),
            parameter_count=len(parameters),
            state_nbytes=sum(layers.nbytes_of(t) for t in state),
            state_devices=tuple(sorted({str(t.device) for t in state if t.dim()})),
            parameter_devices=tuple(sorted({str(p.device) for p in parameters})),
        )

    def _graph_facts(self, names: namespace.Names, look: Look) -> tuple[Any, ...]:
        if not any(t.grad_fn is not None for _, t in names.tensors):
            return ()
        return self._graphs.facts(names, set(storages_of(names)), look.since, look.deadline)

    def _holders(self, names: namespace.Names, look: Look) -> tuple[Any, ...]:
        if not look.history or not names.complete:
            return ()
        kept = namespace.walk_paths(((f"Out[{k}]", v) for k, v in list(look.history.items())), look.deadline)
        if not kept.tensors and not kept.modules:
            return ()
        return history_facts(look.history, names, self._reader, look.deadline)


def _visible(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in dict(names).items() if not namespace.hidden(name)]


def _tensor_fact(path: str, tensor: torch.Tensor, first_seen: int) -> TensorFact:
    made_by = tensor.grad_fn
    own = layers.nbytes_of(tensor)
    return TensorFact(
        path=path,
        shape=_shape(tensor),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        nbytes=own,
        storage_nbytes=own,
        requires_grad=tensor.requires_grad,
        is_leaf=tensor.is_leaf,
        made_by="" if made_by is None else type(made_by).__name__,
        key=id(tensor),
        first_seen_cell=first_seen or None,
    )


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape; empty for tensors that have none yet or of which the parts differ."""
    try:
        return tuple(int(n) for n in tensor.shape)
    except Exception:  # noqa: BLE001
        return ()


def _states(optimizer: Any) -> list[list[Any]]:
    state = vars(optimizer).get("state") or {}
    return [list(entry.values()) for entry in list(dict.values(state)) if type(entry) is dict]


def _path_in(module: Any, path: str, name: str) -> str:
    """`net[3]` for a layer of a Sequential, `net.head` for a named one."""
    text, here = path, module
    for part in name.split(".") if name else ():
        indexed = type(here) in (torch.nn.Sequential, torch.nn.ModuleList) and part.isdigit()
        text += f"[{part}]" if indexed else f".{part}"
        here = (layers.fields_of(here).get("_modules") or {}).get(part)
    return text
