"""Layers of the user's own that read `self.training` in order to draw random numbers, told from their code alone."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from torch_inspector.observe import kinds

# Parts of names of functions that add chance: `F.dropout`, `drop_path`, `torch.randn_like`, `x.bernoulli_`.
_CHANCE = ("dropout", "drop_path", "rand", "bernoulli", "noise", "normal_", "uniform_", "stochastic")
# Parts of names of fields that say how much of it there is.
_AMOUNTS = ("drop", "prob", "std", "sigma", "noise", "rate")


def draws(layer: Any) -> bool:
    """True if `forward` of a class outside torch names both `training` and something that adds chance."""
    code = _forward_of(type(layer))
    if code is None or "training" not in code.co_names:
        return False
    fields = kinds.fields_of(layer)
    layers: Any = fields.get("_modules") or {}
    names = [name for name in code.co_names if name not in layers and name not in fields]
    return any(part in name for name in names for part in _CHANCE) and not _switched_off(fields)


def _forward_of(kind: type[Any]) -> CodeType | None:
    for base in kinds.mro_of(kind):
        forward = kinds.class_fields(base).get("forward")
        if forward is not None:
            return forward.__code__ if type(forward) is FunctionType and not _is_torch(base) else None
    return None


def _is_torch(kind: type[Any]) -> bool:
    return kinds.module_of(kind).partition(".")[0] == "torch"


def _switched_off(fields: dict[str, Any]) -> bool:
    """True if all numbers that say how much chance is added are zero, as in `Block(dropout=0.0)`."""
    amounts = [
        value
        for name, value in fields.items()
        if kinds.is_one_of(value, (int, float)) and (name == "p" or any(part in name for part in _AMOUNTS))
    ]
    return bool(amounts) and not any(amounts)
