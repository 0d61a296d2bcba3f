"""Looks into a module: layers whose behaviour depends on the mode, parameters, devices. Calls none of its methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from torch_inspector.facts import LayerCounts
from torch_inspector.observe import as_torch, kinds, private, selftrained

# Submodules looked at in one module; larger trees are cut.
LAYER_LIMIT = 5_000
# The field that switches the mode-dependent part of a layer on.
_SWITCHED = (
    (_DropoutNd, "p"),
    (_NormBase, "track_running_stats"),
    (nn.RNNBase, "dropout"),
    (nn.MultiheadAttention, "dropout"),
)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Inside(NamedTuple):
    """What the layers of a module say."""

    awake: LayerCounts
    asleep: LayerCounts
    frozen_asleep: int
    awake_parts: tuple[str, ...] = ()
    """Where others sleep: dotted names of the largest parts in which none does and some layer is awake."""


def walk_modules(module: Any) -> Iterator[tuple[str, Any]]:
    """A module and all below it with dotted names, each once, without `named_modules()`, which users override."""
    seen, stack, left = {id(module)}, [("", module)], LAYER_LIMIT
    while stack and left:
        name, one = stack.pop()
        left -= 1
        yield name, one
        children = kinds.fields_of(one).get("_modules") or {}
        for key, child in reversed(list(children.items())):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                stack.append((f"{name}.{key}" if name else str(key), child))


def walk_parameters(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters below a module with dotted names, each once."""
    seen: set[int] = set()
    for prefix, one in walk_modules(module):
        for key, parameter in (kinds.fields_of(one).get("_parameters") or {}).items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{prefix}.{key}" if prefix else str(key), parameter


def typed_path(path: str, module: Any, name: str) -> str:
    """How to type a part by its dotted name: `net[3]` in a list, `net.heads['a']` in a ModuleDict, `net.head` else."""
    text, here = path, module
    for part in name.split(".") if name else ():
        if kinds.is_a(here, nn.ModuleDict):
            text += f"[{part!r}]"
        elif part.isdigit():
            listed = kinds.is_a(here, nn.Sequential) or kinds.is_a(here, nn.ModuleList)
            text = f"{text}[{part}]" if listed else f'getattr({text}, "{part}")'
        else:
            text += f".{part}"
        here = part_of(here, part)
    return text


def part_of(module: Any, name: str) -> Any:
    """The part that a module has under a name; None if it has none. Of a traced module the registry has no `get`."""
    parts = kinds.fields_of(module).get("_modules")
    return dict(parts.items()).get(name) if parts else None


def is_training(module: Any) -> bool:
    """True for a module in train mode."""
    fields = kinds.fields_of(module)
    mode = fields.get("training")
    if mode is None and "_actual_script_module" in fields:  # a traced one hands on to a scripted one
        fields = kinds.fields_of(fields["_actual_script_module"])
    return private.scripted_mode(fields["_c"]) if mode is None and "_c" in fields else mode is True


def look_inside(module: Any) -> Inside:
    """Counts the layers that behave differently in train and eval mode."""
    awake: Counter[str] = Counter()
    asleep: Counter[str] = Counter()
    sleeping: list[str] = []
    waking: list[str] = []
    for name, layer in walk_modules(module):
        kind = depends_on_mode(layer)
        if kind and is_training(layer):
            awake[kind] += 1
            waking.append(name)
        elif kind:
            asleep[kind] += 1
            sleeping.append(name)
    trainable = trainable_parts(module) if sleeping else {}
    frozen = sum(not next((trainable[part] for part in outwards(name) if part in trainable), True) for name in sleeping)
    parts = _apart(waking, sleeping) if sleeping else ()
    return Inside(tuple(sorted(awake.items())), tuple(sorted(asleep.items())), frozen, parts)


def _apart(waking: list[str], sleeping: list[str]) -> tuple[str, ...]:
    """For each name of the first list, the shortest beginning that no name of the second list has, each once."""
    mixed = {part for name in sleeping for part in outwards(name)}
    parts = ([part for part in outwards(name) if part not in mixed] for name in waking)
    return tuple(dict.fromkeys(found[-1] for found in parts if found))


def trainable_parts(module: Any) -> dict[str, bool]:
    """For each part that has parameters, itself or below: does any of them need a gradient?"""
    parts: dict[str, bool] = {}
    for name, parameter in walk_parameters(module):
        for part in outwards(name.rpartition(".")[0]):
            parts[part] = parts.get(part, False) or as_torch.requires_grad(parameter)
    return parts


def outwards(name: str) -> Iterator[str]:
    """`a.b`, `a`, and the empty name of the whole."""
    while name:
        yield name
        name = name.rpartition(".")[0]
    yield ""


def depends_on_mode(layer: Any) -> str:
    """The kind of a layer that behaves differently in train and eval mode, as shown to the user; else empty.

    Dropout that drops, normalisation that keeps statistics, RReLU, and classes that read `self.training` themselves.
    """
    fields = kinds.fields_of(layer)
    depends = next((_positive(fields.get(field)) for base, field in _SWITCHED if kinds.is_a(layer, base)), None)
    if depends is None and not kinds.is_a(layer, nn.RReLU):
        return f"{kinds.class_name(layer)} (reads self.training)" if selftrained.draws(layer) else ""
    return kinds.class_name(layer) if depends is not False else ""


def _positive(value: Any) -> bool:
    return kinds.is_one_of(value, (int, float, bool)) and value > 0


def softmax_layers(module: Any) -> tuple[str, ...]:
    """Dotted names of `nn.Softmax` and `nn.Softmax2d` layers."""
    softmax = (nn.Softmax, nn.Softmax2d)
    return tuple(name for name, one in walk_modules(module) if any(kinds.is_a(one, kind) for kind in softmax))


_SQUASHING = {nn.Softmax: "Softmax", nn.Softmax2d: "Softmax2d", nn.LogSoftmax: "LogSoftmax", nn.Sigmoid: "Sigmoid"}


def squashing_layers(module: Any) -> list[tuple[str, str, int | None]]:
    """Dotted names of layers that make probabilities or their logarithms, what they are, and along which axis."""
    found = []
    for name, one in walk_modules(module):
        kind = next((name for base, name in _SQUASHING.items() if kinds.is_a(one, base)), None)
        if kind is not None:
            axis = kinds.fields_of(one).get("dim")
            found.append((name, kind, axis if type(axis) is int else None))
    return found


def has_hooks(module: Any) -> bool:
    """True if somebody has registered a hook on a layer."""
    return any(kinds.fields_of(one).get(name) for _, one in walk_modules(module) for name in _HOOKS)


def number_of(parameter: torch.Tensor) -> int:
    """Numbers in a parameter; 0 while it has no shape yet."""
    try:
        return int(as_torch.numel(parameter))
    except Exception:  # noqa: BLE001
        return 0


def nbytes_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements of a tensor; 0 on meta and for kinds without plain elements."""
    try:
        return 0 if as_torch.is_meta(tensor) else as_torch.numel(tensor) * as_torch.element_size(tensor)
    except Exception:  # noqa: BLE001
        return 0
