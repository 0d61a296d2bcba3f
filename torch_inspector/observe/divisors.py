"""What an optimizer divides by, where a weight is not finite."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.in_memory import is_in_memory

# Sums and averages of squared gradients, of which the roots are divided by.
_SQUARES = ("exp_avg_sq", "square_avg", "sum")


def is_zero_where_spoiled(optimizer: Any, parameter: torch.Tensor) -> bool:
    """True if such an average is 0 where a parameter on the CPU is not finite: every gradient was 0 there."""
    states: Any = kinds.fields_of(optimizer).get("state")
    state: Any = dict.get(states, parameter) if kinds.is_a(states, dict) else None
    if not kinds.is_a(state, dict):
        return False
    squares = [dict.get(state, name) for name in _SQUARES]
    return any(_is_zero_at(one, parameter) for one in squares if type(one) is torch.Tensor)


def _is_zero_at(square: torch.Tensor, parameter: torch.Tensor) -> bool:
    if square.shape != parameter.shape or not all(map(is_in_memory, (square, parameter))):
        return False
    return bool(((square == 0) & ~as_torch.detach(parameter).isfinite()).any())
