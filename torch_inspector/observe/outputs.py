"""Tensors in what a module returns, whatever it is packed in."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds

# Parts of a result that are looked at; a loss, logits and hidden states come first in all known kinds.
_PARTS = 8
# Packing inside packing: `(output, (hidden, cell))`.
_DEPTH = 2


def main_tensor(result: Any) -> torch.Tensor | None:
    """The first tensor with history in a result, else the first one."""
    found = _tensors(result, _DEPTH)
    return next((one for one in found if as_torch.requires_grad(one)), found[0] if found else None)


def _tensors(result: Any, depth: int) -> list[torch.Tensor]:
    if kinds.is_a(result, torch.Tensor):
        return [result]
    parts = _parts(result) if depth else []
    return [tensor for part in parts for tensor in _tensors(part, depth - 1)]


def _parts(result: Any) -> list[Any]:
    """What is inside a tuple, list, dict or an object with fields such as a dataclass, past methods of their own."""
    if kinds.is_a(result, tuple):
        return list(tuple.__getitem__(result, slice(_PARTS)))
    if kinds.is_a(result, list):
        return list(list.__getitem__(result, slice(_PARTS)))
    if kinds.is_a(result, dict):
        return list(dict.values(result))[:_PARTS]
    return list(kinds.fields_of(result).values())[:_PARTS]
