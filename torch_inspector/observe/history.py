"""What IPython's output history keeps alive that no variable of the user holds."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from time import thread_time
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import HolderFact
from torch_inspector.observe import as_torch, kinds, layers, private, sorts
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.namespace import Names, hidden, walk_paths
from torch_inspector.observe.reach import Reach, gradients_readable, storages_behind

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader

# Processor time to find out whether anything else holds a result. It is spent once, and again when the number of
# references to a result has changed.
_PROOF_S = 0.020
# The same for reading graphs.
_GRAPHS_S = 0.25
# Elements of a result that are looked at first.
_ELEMENTS = 1_000


def storages_of(names: Names) -> dict[int, int]:
    """Identity and bytes of every storage that variables hold: tensors, parameters, buffers, gradients, states."""
    return {key: nbytes for _, (key, nbytes) in _held(names)}


def _held(names: Names) -> Iterator[tuple[str, tuple[int, int]]]:
    """Every storage with the path of what holds it."""
    gradients = gradients_readable()
    for path, tensors in chain(
        ((path, (tensor,)) for path, tensor in names.tensors),
        ((path, module_tensors(module)) for path, module in names.modules),
        ((path, optimizer_tensors(optimizer)) for path, optimizer in names.optimizers),
    ):
        for tensor in tensors:
            yield from ((path, storage) for storage in storages_behind(tensor, gradients=gradients))


def module_tensors(module: Any) -> Iterator[torch.Tensor]:
    """Parameters and buffers of a module and all below it."""
    for _, one in layers.walk_modules(module):
        fields = kinds.fields_of(one)
        for kind in ("_parameters", "_buffers"):
            yield from _tensors_in(fields.get(kind))


def optimizer_tensors(optimizer: Any) -> Iterator[torch.Tensor]:
    """Parameters of an optimizer and what it remembers of each."""
    for group in parameters_of(optimizer):
        yield from (tensor for tensor in group if kinds.is_a(tensor, torch.Tensor))
    states = kinds.fields_of(optimizer).get("state")
    for state in sorts.elements("mapping", states, sys.maxsize) if _is_dict(states) else ():
        yield from _tensors_in(state)


def _is_dict(thing: Any) -> bool:
    return kinds.is_one_of(thing, (dict, OrderedDict, defaultdict)) or kinds.is_a(thing, dict)


def _tensors_in(mapping: Any) -> Iterator[torch.Tensor]:
    for tensor in sorts.elements("mapping", mapping, sys.maxsize) if _is_dict(mapping) else ():
        if kinds.is_a(tensor, torch.Tensor):
            yield tensor


def node_of(tensor: Any) -> Any:
    """The node that made a tensor; None for leaves, and for a view that an in-place operation has made invalid."""
    try:
        return as_torch.grad_fn(tensor)
    except RuntimeError:
        return None


@dataclass
class _Result:
    """One entry of `Out` that has tensors."""

    number: int
    value: Any
    names: Names
    storages: dict[int, int] = field(default_factory=dict)
    graph: dict[int, int] = field(default_factory=dict)
    """Storages that only the graph behind it holds."""

    def mark(self) -> tuple[Any, ...]:
        """Changes when somebody else lets go of the result, or takes hold of it."""
        things = [thing for _, thing in (*self.names.tensors, *self.names.modules, *self.names.optimizers)]
        for _, module in self.names.modules:
            things.extend(islice(module_tensors(module), 1))
        for _, optimizer in self.names.optimizers:
            things.extend(islice(optimizer_tensors(optimizer), 1))
        counts = [(id(thing), sys.getrefcount(thing), _sharers(thing)) for thing in things]
        return self.number, id(self.value), sys.getrefcount(self.value), *counts


def _sharers(thing: Any) -> tuple[int, ...]:
    """How many tensors share the storage of this one, how much refers to what it is a view of, and to itself in C++."""
    count = private.storage_use_count
    if count is None or not kinds.is_a(thing, torch.Tensor):
        return ()
    storage, base = private.storage_of(thing), as_torch.base(thing)
    sharing = int(count(storage[0])) if storage is not None else 0
    # A gradient is held in C++. Of a parameter every graph that it takes part in would count.
    viewed = 0 if base is None else sys.getrefcount(base)
    return sharing, viewed, 0 if as_torch.requires_grad(thing) else int(private.tensor_use_count(thing))


class OutputHistory:
    """Looks at `Out` after every cell and remembers what it said while nothing changes."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._marks: list[Any] = []
        self._facts: tuple[HolderFact, ...] = ()
        self._held_by: dict[int, dict[int, str]] = {}

    def facts(
        self, history: Mapping[Any, Any], variables: Mapping[str, Any], user: Names, deadline: float
    ) -> tuple[HolderFact, ...]:
        """One fact per result that keeps memory which nothing of the user's leads to.

        Bytes shared by results count for the first.

        Args:
            history: IPython's `Out`.
            variables: The user's namespace.
            user: What the walk of the variables found.
            deadline: `thread_time()` time at which to stop.
        """
        results = list(_results(history, deadline))
        marks = [result.mark() for result in results]
        if marks != self._marks or private.storage_use_count is None:
            self._facts = self._look(results, history, variables, user)
            self._marks = marks
        return self._facts

    def _look(
        self, results: list[_Result], history: Mapping[Any, Any], variables: Mapping[str, Any], user: Names
    ) -> tuple[HolderFact, ...]:
        numbers = {result.number for result in results}
        self._held_by = {number: known for number, known in self._held_by.items() if number in numbers}
        if not results:
            return ()
        held = _paths_of_storages(user)
        deadline = thread_time() + _GRAPHS_S
        for result in results:
            result.storages = storages_of(result.names)
            self._note_names(result, held)
        alone = {key for result in results for key in result.storages if key not in held}
        self._read_graphs(results, user, set(held), deadline)
        alone |= {key for result in results for key in result.graph}
        alone = self._proved(alone, history, variables, user, deadline) if alone else alone
        facts = []
        for result in results:
            fact = self._fact(result, alone)
            alone -= result.storages.keys() | result.graph.keys()
            facts.extend([fact] if fact.nbytes else [])
        return tuple(facts)

    def _note_names(self, result: _Result, held: dict[int, str]) -> None:
        """Remembers which variable holds what is in a result, to name it once it is gone."""
        known = self._held_by.setdefault(result.number, {})
        known.update({key: held[key] for key in result.storages if key in held})

    def _read_graphs(self, results: list[_Result], user: Names, held: set[int], deadline: float) -> None:
        nodes = {id(node) for _, tensor in user.tensors if (node := node_of(tensor)) is not None}
        for result in results:
            roots = [node for _, tensor in result.names.tensors if (node := node_of(tensor)) is not None]
            roots = [node for node in roots if id(node) not in nodes]
            walk = self._reader.walk(roots, deadline) if roots else None
            if walk is not None:
                own = walk.storages.items()
                left_out = held | walk.leaf_storages | result.storages.keys()
                result.graph = {key: nbytes for key, nbytes in own if key not in left_out}

    def _proved(
        self, alone: set[int], history: Mapping[Any, Any], variables: Mapping[str, Any], user: Names, deadline: float
    ) -> set[int]:
        """Those of some storages that nothing of the user's leads to, none of them if that could not be found out."""
        roots = [node for _, tensor in user.tensors if (node := node_of(tensor)) is not None]
        if roots:
            walk = self._reader.walk(roots, deadline)
            if walk is None or not walk.complete:
                return set()
            alone = alone - walk.storages.keys()
        reach = Reach(alone, (history, variables), _PROOF_S)
        reach.search(value for name, value in list(variables.items()) if not hidden(name))
        return reach.wanted if reach.complete else set()

    def _fact(self, result: _Result, alone: set[int]) -> HolderFact:
        own = {key: nbytes for key, nbytes in result.storages.items() if key in alone}
        graph_nbytes = sum(nbytes for key, nbytes in result.graph.items() if key in alone and key not in own)
        first = result.names.tensors[0][1] if result.names.tensors else None
        whole = first is result.value and first is not None
        names = [path for key, path in self._held_by.get(result.number, {}).items() if key in own]
        return HolderFact(
            path=f"Out[{result.number}]",
            kind=_kind(result.value),
            nbytes=sum(own.values()) + graph_nbytes,
            shape=_shape(first) if whole else None,
            dtype=str(first.dtype).removeprefix("torch.") if first is not None else "",
            device=str(first.device) if first is not None else "",
            key=result.number,
            graph_nbytes=graph_nbytes,
            names=tuple(dict.fromkeys(names)),
            element_nbytes=layers.nbytes_of(first) if first is not None and whole else 0,
        )


def _results(history: Mapping[Any, Any], deadline: float) -> Iterator[_Result]:
    """The entries of `Out` that have tensors; of those that are the same object, the first."""
    met: set[int] = set()
    for number, value in list(history.items()):
        if type(number) is int and id(type(value)) not in sorts.ATOMS and id(value) not in met:
            met.add(id(value))
            names = _names_in(f"Out[{number}]", value, deadline)
            if names.tensors or names.modules or names.optimizers:
                yield _Result(number, value, names)


def _names_in(path: str, value: Any, deadline: float) -> Names:
    sort = "tensor" if type(value) is torch.Tensor else sorts.sort_of(type(value))
    if sort == "tensor":
        return Names(tensors=[(path, value)])
    if sort == "module":
        return Names(modules=[(path, value)])
    if sort == "optimizer":
        return Names(optimizers=[(path, value)])
    if sort == "skip" or sorts.ATOMS.issuperset(map(id, map(type, sorts.elements(sort, value, _ELEMENTS)))):
        return Names()
    return walk_paths([(path, value)], deadline)


def _paths_of_storages(names: Names) -> dict[int, str]:
    """Storages that variables hold, with the first path that leads there."""
    paths: dict[int, str] = {}
    for path, (key, _) in _held(names):
        paths.setdefault(key, path)
    return paths


def _kind(value: Any) -> str:
    """Name of the class; with its module for what `sort` and `topk` return, whose classes are called like them."""
    name, module = kinds.class_name(value), sorts.module_of(type(value))
    return f"{module}.{name}" if module == "torch.return_types" else name


def _shape(tensor: Any) -> tuple[int, ...] | None:
    try:
        return tuple(int(n) for n in tensor.shape)
    except Exception:  # noqa: BLE001
        return None
