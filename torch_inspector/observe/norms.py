"""Layers of a module that normalise by their batch: which are frozen, which still learn, which keep no statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from torch_inspector.facts import NormsFact
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.sampled import some_values
from torch_inspector.observe.versions import version_of

# Frozen layers of which a change is noticed.
_MARKED = 4


def norms_in(module: Any, keys: Keys) -> NormsFact | None:
    """What the BatchNorm layers of a module say; None if it has none."""
    norms = _norms(module)
    if not norms:
        return None
    frozen = _frozen(norms)
    learning = [(name, layer) for name, layer in norms if not _is_training(layer) and _needs_gradients(layer)]
    own = {id(p) for _, layer in norms for p in _parameters(layer)} if frozen else set()
    rest = layers.walk_parameters(module) if frozen else ()
    others = [as_torch.requires_grad(p) for _, p in rest if id(p) not in own]
    return NormsFact(
        count=len(norms),
        kinds=tuple(sorted({kinds.class_name(layer) for _, layer in norms})),
        frozen_awake=tuple(name for name, _ in frozen),
        frozen_keys=frozenset(id(p) for _, layer in frozen for p in _parameters(layer)),
        learning_asleep=tuple(name for name, _ in learning),
        learning_keys=frozenset(id(p) for _, layer in learning for p in _parameters(layer)),
        untracked=tuple(name for name, layer in norms if kinds.fields_of(layer).get("track_running_stats") is False),
        others_frozen=others.count(False),
        others_trainable=others.count(True),
        mark=_marks(frozen),
        frozen_parts=tuple(_frozen_parts(module, [name for name, _ in frozen], keys)) if frozen else (),
    )


def marks_in(module: Any) -> tuple[tuple[float, ...], ...]:
    """The marks of the frozen layers of a module at a later moment."""
    return _marks(_frozen(_norms(module)))


def _norms(module: Any) -> list[tuple[str, Any]]:
    return [(name, layer) for name, layer in layers.walk_modules(module) if _is_batch_norm(layer)]


def _frozen(norms: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(name, layer) for name, layer in norms if _is_awake(layer) and _needs_gradients(layer) is False]


def _marks(frozen: list[tuple[str, Any]]) -> tuple[tuple[float, ...], ...]:
    return tuple(_mark(p) for _, layer in frozen[:_MARKED] for p in _parameters(layer))


def _frozen_parts(module: Any, names: list[str], keys: Keys) -> Iterator[tuple[str, int]]:
    """What is around all these layers, below the module itself, and has no parameter that needs a gradient."""
    around = [set(layers.outwards(name.rpartition(".")[0])) for name in names]
    trainable, parts = layers.trainable_parts(module), dict(layers.walk_modules(module))
    common = set.intersection(*around) - {""}
    frozen = [name for name in common if not trainable.get(name, True) and name in parts]
    yield from ((name, keys.of(parts[name])) for name in sorted(frozen, key=len))


def _is_batch_norm(layer: Any) -> bool:
    return kinds.is_a(layer, _NormBase) and not kinds.is_a(layer, _InstanceNorm)


def _is_training(layer: Any) -> bool:
    return kinds.fields_of(layer).get("training") is True


def _is_awake(layer: Any) -> bool:
    return _is_training(layer) and kinds.fields_of(layer).get("track_running_stats") is True


def _parameters(layer: Any) -> list[Any]:
    return [p for p in (kinds.fields_of(layer).get("_parameters") or {}).values() if p is not None]


def _needs_gradients(layer: Any) -> bool | None:
    """None for a layer without weight and bias."""
    parameters = _parameters(layer)
    return any(as_torch.requires_grad(p) for p in parameters) if parameters else None


def _mark(parameter: Any) -> tuple[float, ...]:
    """How often it was changed in place, and some values: who writes to `.data` is not counted."""
    try:
        return (float(version_of(parameter)), *(some_values(parameter) or ()))
    except RuntimeError:
        return ()
