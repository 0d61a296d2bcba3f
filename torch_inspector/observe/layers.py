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

# Submodules looked at in one module; larger trees are cut.
LAYER_LIMIT = 5_000


class Inside(NamedTuple):
    """What the layers of a module say."""

    awake: LayerCounts
    asleep: LayerCounts
    frozen_asleep: int


def fields_of(module: Any) -> dict[str, Any]:
    """The instance dictionary of a module, past any `__getattr__` or `__getattribute__` of its own."""
    fields = object.__getattribute__(module, "__dict__")
    return fields if type(fields) is dict else {}


def walk_modules(module: Any) -> Iterator[tuple[str, Any]]:
    """A module and all below it with dotted names, each once, without `named_modules()`, which users override."""
    seen, stack, left = {id(module)}, [("", module)], LAYER_LIMIT
    while stack and left:
        name, one = stack.pop()
        left -= 1
        yield name, one
        children = fields_of(one).get("_modules") or {}
        for key, child in reversed(list(children.items())):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                stack.append((f"{name}.{key}" if name else str(key), child))


def walk_parameters(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """All parameters below a module with dotted names, each once."""
    seen: set[int] = set()
    for prefix, one in walk_modules(module):
        for key, parameter in (fields_of(one).get("_parameters") or {}).items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{prefix}.{key}" if prefix else str(key), parameter


def look_inside(module: Any) -> Inside:
    """Counts the layers that behave differently in train and eval mode."""
    awake: Counter[str] = Counter()
    asleep: Counter[str] = Counter()
    frozen = 0
    for _, layer in walk_modules(module):
        kind = type(layer)
        if not depends_on_mode(layer):
            continue
        if fields_of(layer).get("training"):
            awake[kind.__name__] += 1
        else:
            asleep[kind.__name__] += 1
            frozen += _NormBase in kind.__mro__ and _is_frozen(layer)
    return Inside(tuple(sorted(awake.items())), tuple(sorted(asleep.items())), frozen)


def depends_on_mode(layer: Any) -> bool:
    """True for dropout that drops, normalisation that keeps statistics, and RReLU."""
    kinds, fields = type(layer).__mro__, fields_of(layer)
    if _DropoutNd in kinds:
        return bool(fields.get("p"))
    if _NormBase in kinds:
        return bool(fields.get("track_running_stats"))
    if nn.RReLU in kinds:
        return True
    return nn.RNNBase in kinds and bool(fields.get("dropout"))


def _is_frozen(layer: Any) -> bool:
    own = [p for p in (fields_of(layer).get("_parameters") or {}).values() if p is not None]
    return not any(parameter.requires_grad for parameter in own)


def softmax_layers(module: Any) -> tuple[str, ...]:
    """Dotted names of `nn.Softmax` layers."""
    return tuple(name for name, one in walk_modules(module) if nn.Softmax in type(one).__mro__)


def number_of(parameter: torch.Tensor) -> int:
    """Numbers in a parameter; 0 while it has no shape yet."""
    try:
        return int(parameter.numel())
    except Exception:  # noqa: BLE001
        return 0


def nbytes_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements of a tensor; 0 on meta and for kinds without plain elements."""
    try:
        return 0 if tensor.is_meta else tensor.numel() * tensor.element_size()
    except Exception:  # noqa: BLE001
        return 0
