"""Targets of a binary loss that are no probabilities, which the loss takes without a word."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torch_inspector.facts import PatternFact
from torch_inspector.observe import as_torch
from torch_inspector.observe.graph import Walk
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.saved import saved_value

OUTSIDE = "targets-outside"
_LOSS = "BinaryCrossEntropyWithLogitsBackward0"
# Labels of a discriminator are now and then softened to 0.7 to 1.2 on purpose.
_LOWEST, _HIGHEST = -0.5, 1.5
# About 20 µs.
_LARGEST = 1 << 16


def targets_outside(walk: Walk) -> Iterator[PatternFact]:
    """Binary losses of scores whose targets lie well outside of 0 to 1; on the CPU only."""
    for node in walk.by_kind.get(_LOSS, ()):
        target = saved_value(node, "target")
        # Who takes the losses one by one, or weighs them, may leave such targets out.
        if getattr(node, "_saved_reduction", 0) == 0 or saved_value(node, "weight") is not None:
            continue
        if type(target) is not torch.Tensor or not 0 < target.numel() <= _LARGEST or not is_in_memory(target):
            continue
        low, high = (float(one) for one in as_torch.detach(target).aminmax())
        if low < _LOWEST or high > _HIGHEST:
            yield PatternFact(OUTSIDE, (_LOSS,), (tuple(target.shape),), extent=(low, high))
