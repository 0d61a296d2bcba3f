"""What a layer of torch was built with, as its constructor would be given it."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from torch_inspector.observe import kinds

_KNOWN: tuple[type[Any], ...] = (
    nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d,
    nn.ConvTranspose3d, nn.LSTM, nn.GRU, nn.RNN, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm,
    nn.MultiheadAttention, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d,
)  # fmt: skip
_PLAIN = (int, float, str, bool, type(None))
# Not for a reader: where and of what type, and what `RNNBase` alone is given.
_LEFT_OUT = frozenset(["self", "args", "kwargs", "device", "dtype", "mode", "_weight", "_freeze", "kdim", "vdim"])


def torchs_kind(layer: Any) -> type[Any] | None:
    """The class of torch that a layer is or inherits from, of those that are known here."""
    return next((kind for kind in kinds.mro_of(type(layer)) if kinds.is_among(kind, _KNOWN)), None)


def maker_of(layer: Any, kind: type[Any]) -> str:
    """What the code calls to build a layer by the settings of a class of torch; empty if its class is given others."""
    own = type(layer)
    if kinds.module_of(own).partition(".")[0] == "torch":
        return f"nn.{kinds.name_of(kind)}"
    classes = kinds.mro_of(own)
    above = classes[: next(number for number, one in enumerate(classes) if one is kind)]
    makes = any(name in kinds.class_fields(one) for one in above for name in ("__init__", "__new__"))
    return "" if makes else kinds.name_of(own)


def settings_of(layer: Any, kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Names and texts of the arguments of a constructor, without those that have their usual value."""
    base = nn.RNNBase if issubclass(kind, nn.RNNBase) else kind
    fields = kinds.fields_of(layer)
    found = []
    for name, parameter in inspect.signature(base.__init__).parameters.items():
        value = _value(fields, name)
        if name not in _LEFT_OUT and value is not None and value != parameter.default:
            found.append((name, repr(value)))
    return tuple(found)


def _value(fields: dict[str, Any], name: str) -> Any:
    """A plain field; `(3, 3)` is `3`, and of a bias it is asked whether there is one."""
    parameters = fields.get("_parameters")
    if kinds.is_registry(parameters) and name in parameters:
        return parameters[name] is not None
    value = fields.get(name)
    if type(value) is tuple and value and all(type(one) is int for one in value):
        return value[0] if len(set(value)) == 1 else value
    return value if kinds.is_one_of(value, _PLAIN) else None
