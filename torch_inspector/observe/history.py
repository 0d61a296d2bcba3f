"""What IPython's output history keeps alive that no variable of the user holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import HolderFact
from torch_inspector.observe import layers, private
from torch_inspector.observe.namespace import Names, walk_paths

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader, Walk


def storages_of(names: Names) -> dict[int, int]:
    """Identity and bytes of every storage that variables hold: tensors, parameters, buffers, gradients."""
    held: dict[int, int] = {}
    for _, tensor in names.tensors:
        _add(held, tensor)
    for _, module in names.modules:
        for tensor in module_tensors(module):
            _add(held, tensor)
    return held


def module_tensors(module: Any) -> Iterable[torch.Tensor]:
    """Parameters, their gradients and buffers of a module and all below it."""
    for _, one in layers.walk_modules(module):
        fields = layers.fields_of(one)
        for kind in ("_parameters", "_buffers"):
            for tensor in (fields.get(kind) or {}).values():
                if tensor is not None and issubclass(type(tensor), torch.Tensor):
                    yield tensor


def _add(held: dict[int, int], tensor: torch.Tensor) -> None:
    storage = private.storage_of(tensor)
    if storage is not None:
        held[storage[0]] = storage[1]
    if tensor.is_leaf and tensor.requires_grad and tensor.grad is not None:
        _add(held, tensor.grad)


def history_facts(
    history: Mapping[Any, Any], user: Names, reader: GraphReader, deadline: float
) -> tuple[HolderFact, ...]:
    """One fact per entry of `Out` that keeps memory nobody else holds; bytes shared by entries count for the first."""
    facts, counted = [], set(storages_of(user))
    nodes = {id(t.grad_fn) for _, t in user.tensors if t.grad_fn is not None}
    for number, value in list(history.items()):
        if type(number) is not int:
            continue
        names = walk_paths([(f"Out[{number}]", value)], deadline)
        if names.tensors or names.modules:
            roots = [t.grad_fn for _, t in names.tensors if t.grad_fn is not None and id(t.grad_fn) not in nodes]
            walk = reader.walk(roots, deadline) if roots else None
            fact = _holder(number, value, names, counted, walk)
            facts.extend([fact] if fact.nbytes else [])
    return tuple(facts)


def _holder(number: int, value: Any, names: Names, counted: set[int], walk: Walk | None) -> HolderFact:
    mine = {key: n for key, n in storages_of(names).items() if key not in counted}
    counted |= mine.keys()
    graph_nbytes = walk.saved_nbytes(counted) if walk is not None else 0
    first = names.tensors[0][1] if names.tensors else None
    return HolderFact(
        path=f"Out[{number}]",
        kind=type(value).__name__,
        nbytes=sum(mine.values()) + graph_nbytes,
        shape=tuple(first.shape) if first is value and first is not None else None,
        dtype=str(first.dtype).removeprefix("torch.") if first is not None else "",
        device=str(first.device) if first is not None else "",
        key=number,
        graph_nbytes=graph_nbytes,
    )
