"""Whether what a loss over classes was given is probabilities by its numbers, which sum to 1 along the right axis."""

from __future__ import annotations

from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.private import Node
from torch_inspector.observe.saved import saved_value

BY_VALUE = "probabilities"
"""Said of what is known by its numbers only."""

# About a millisecond.
_ELEMENTS = 300_000
# A small number added to each probability, or the digits of float16.
_ROUNDING = 1e-2
# (samples, classes).
_TABLE = 2


def holds_probabilities(node: Node) -> bool:
    """True if an `nll_loss` was given rows of numbers from 0 to 1 that sum to 1, and are not all 0 and 1.

    Logarithms of probabilities are never above 0, so no right input of the loss looks like that; samples
    that are one-hot may stand there to count hits.
    """
    given: Any = saved_value(node, "self")
    if not kinds.is_one_of(given, (torch.Tensor, torch.nn.Parameter)) or not is_in_memory(given):
        return False
    if given.dim() < _TABLE or not 0 < given.numel() <= _ELEMENTS or given.shape[1] < 2:  # noqa: PLR2004
        return False
    values = as_torch.detach(given).float()
    near = (values.sum(1) - 1).abs() <= _ROUNDING
    inside = (values >= 0) & (values <= 1 + _ROUNDING)
    return bool(inside.all()) and bool(near.all()) and bool(((values > 0) & (values < 1)).any())


def is_of_classes(target: Any) -> bool:
    """True for a target (samples, classes) of which not every column sums to 1.

    They do in the weights of a set of samples that a teacher gave. What cannot be read may be such weights.
    """
    if not kinds.is_one_of(target, (torch.Tensor, torch.nn.Parameter)) or not is_in_memory(target):
        return False
    if as_torch.dim(target) != _TABLE or not 0 < as_torch.numel(target) <= _ELEMENTS:
        return False
    sums = as_torch.detach(target).double().sum(0)
    return not bool(((sums - 1).abs() <= _ROUNDING).all())
