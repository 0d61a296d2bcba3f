"""One tensor, module or optimizer of the user as a fact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from torch_inspector.facts import ModuleFact, OptimizerFact, TensorFact
from torch_inspector.observe import as_torch, kinds, layers, private
from torch_inspector.observe.groups import groups_of, parameters_of
from torch_inspector.observe.history import node_of, optimizer_tensors
from torch_inspector.observe.reach import gradients_readable, is_leaf
from torch_inspector.observe.shapes import shape_of


def module_fact(path: str, module: Any, key: int, *, full: bool, trained: bool) -> ModuleFact:
    """A module; with `full` its layers and parameters too."""
    training = layers.is_training(module)
    if not full:
        return ModuleFact(key, path, kinds.class_name(module), training, trained=trained)
    inside = layers.look_inside(module)
    parameters = list(layers.walk_parameters(module))
    found = layers.squashing_layers(module)
    squashing = [(layers.typed_path(path, module, name), kind, axis) for name, kind, axis in found]
    return ModuleFact(
        key=key,
        path=path,
        kind=kinds.class_name(module),
        training=training,
        awake=inside.awake,
        asleep=inside.asleep,
        frozen_asleep=inside.frozen_asleep,
        devices=tuple(sorted({str(as_torch.device(p)) for _, p in parameters})),
        parameter_count=sum(layers.number_of(p) for _, p in parameters),
        trainable_count=sum(layers.number_of(p) for _, p in parameters if as_torch.requires_grad(p)),
        parameter_nbytes=sum(layers.nbytes_of(p) for _, p in parameters),
        parameter_keys=frozenset(id(p) for _, p in parameters),
        parameter_names=tuple((id(p), name) for name, p in parameters),
        softmax_layers=tuple(where for where, kind, _ in squashing if kind in ("Softmax", "Softmax2d")),
        squashing_layers=tuple(squashing),
        frozen_keys=frozenset(id(p) for _, p in parameters if not as_torch.requires_grad(p)),
        trained=trained,
    )


def with_gradients(fact: ModuleFact, module: Any) -> ModuleFact:
    """The fact of a module, with what the gradients of its parameters take if it was trained."""
    parameters = [p for _, p in layers.walk_parameters(module)] if fact.trained else []
    return replace(fact, gradient_nbytes=_gradient_nbytes(parameters))


def optimizer_fact(path: str, optimizer: Any, key: int, *, full: bool) -> OptimizerFact:
    """An optimizer; with `full` what its state and gradients take, too."""
    groups = groups_of(optimizer)
    rates: list[Any] = [group.get("lr") for group in groups]
    begun: list[Any] = [group.get("initial_lr") for group in groups[:1]]
    parameters = [p for group in parameters_of(optimizer) for p in group]
    keys = frozenset(map(id, parameters))
    state = [t for t in optimizer_tensors(optimizer) if id(t) not in keys] if full else []
    return OptimizerFact(
        key=key,
        path=path,
        kind=kinds.class_name(optimizer),
        learning_rate=float(rates[0]) if rates and kinds.is_one_of(rates[0], (int, float)) else None,
        initial_rate=next((float(rate) for rate in begun if kinds.is_one_of(rate, (int, float))), None),
        parameter_keys=keys,
        parameter_count=len(parameters),
        state_nbytes=sum(layers.nbytes_of(t) for t in state),
        gradient_nbytes=_gradient_nbytes(parameters) if full else 0,
        eps=next((float(g["eps"]) for g in groups_of(optimizer) if kinds.is_one_of(g.get("eps"), (int, float))), None),
        groups=_keys_by_group(optimizer),
        decayed_keys=_decayed_keys(optimizer),
    )


def _keys_by_group(optimizer: Any) -> tuple[frozenset[int], ...]:
    """Parameters of the groups that are to learn, where there are several."""
    groups = [one for one in groups_of(optimizer) if type(one.get("params")) is list]
    rates = [kinds.is_one_of(one.get("lr"), (int, float)) and one["lr"] > 0 for one in groups]
    found = (frozenset(map(id, one["params"])) for one, moves in zip(groups, rates, strict=True) if moves)
    return tuple(found) if len(groups) > 1 else ()


def _decayed_keys(optimizer: Any) -> frozenset[int]:
    groups = [one for one in groups_of(optimizer) if type(one.get("params")) is list]
    decayed = [one for one in groups if kinds.is_one_of(one.get("weight_decay"), (int, float)) and one["weight_decay"]]
    return frozenset(id(p) for one in decayed for p in one["params"])


def _gradient_nbytes(parameters: list[Any]) -> int:
    if not gradients_readable():
        return 0
    return sum(layers.nbytes_of(as_torch.grad(p)) for p in parameters if is_leaf(p) and as_torch.grad(p) is not None)


def still_true(fact: TensorFact, tensor: torch.Tensor) -> bool:
    """True if a fact that was made of an object at the same address and path is still true of it."""
    try:
        return (shape_of(tensor) or ()) == fact.shape and as_torch.requires_grad(tensor) == fact.requires_grad
    except Exception:  # noqa: BLE001
        return False


def tensor_fact(path: str, tensor: torch.Tensor, first_seen: int | None) -> TensorFact:
    """A tensor; `first_seen` is the cell after which it was first there."""
    made_by = node_of(tensor)
    own, storage = layers.nbytes_of(tensor), private.storage_of(tensor)
    return TensorFact(
        path=path,
        # Empty for tensors that have none yet, or whose parts differ.
        shape=shape_of(tensor) or (),
        dtype=str(as_torch.dtype(tensor)).removeprefix("torch."),
        device=str(as_torch.device(tensor)),
        nbytes=own,
        storage_nbytes=own if storage is None else storage[1],
        requires_grad=as_torch.requires_grad(tensor),
        is_leaf=is_leaf(tensor),
        made_by="" if made_by is None else type(made_by).__name__,
        key=id(tensor),
        first_seen_cell=first_seen,
    )
