"""What is remembered of each optimizer from step to step, also across cells: were its gradients cleared, and used?

Holds no tensor: gradients are told apart by address and version counter, which reads no value and waits for no device.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_inspector.facts import Place

Mark = tuple[int, int] | None
"""Address and version of one gradient; None if there is none."""

# Optimizers looked at per backward call; programs with more are rare and only the latest matter.
_WATCHED = 16
# Parameter tensors searched for one with a gradient.
_SEARCHED = 64


def parameters_of(optimizer: Any) -> list[list[torch.Tensor]]:
    """Parameters per group, without running properties of optimizer wrappers."""
    groups = vars(optimizer).get("param_groups") or []
    return [group["params"] for group in groups if type(group) is dict and type(group.get("params")) is list]


@dataclass
class OptimizerRecord:
    """The gradients of one optimizer since its last step."""

    key: int
    kind: str
    ref: weakref.ref[Any]
    probes: list[tuple[int, int]] = field(default_factory=list)
    """Group and position of the parameters that stand for all: one with a gradient per group."""
    step_marks: list[Mark] | None = None
    """Gradients as the last step left them; None if that was not looked at."""
    backward_marks: list[Mark] | None = None
    weight_versions: list[int] = field(default_factory=list)
    start_marks: list[Mark] | None = None
    backward_count: int = 0
    backward_at: Place | None = None
    cleared: bool = False
    """True if somebody cleared or replaced the gradients after the last step."""
    cleared_at: Place | None = None
    """Where they were cleared after the last backward call."""
    used: bool = True
    discarded_count: int = 0
    discarded_at: Place | None = None
    leaf_keys: set[int] = field(default_factory=set)
    leaves_complete: bool = True
    step_count: int = 0

    def marks(self) -> list[Mark]:
        """The gradients of the probes now."""
        groups = self._groups()
        if not self.probes:
            self.probes = [(g, i) for g, group in enumerate(groups) if (i := _first_with_grad(group)) is not None]
        return [_mark(groups[g][i]) for g, i in self.probes if g < len(groups) and i < len(groups[g])]

    def weights(self) -> list[int]:
        """Version counters of the probes' values."""
        groups = self._groups()
        return [groups[g][i]._version for g, i in self.probes if g < len(groups) and i < len(groups[g])]

    def keys(self) -> frozenset[int]:
        """Addresses of all its parameters."""
        return frozenset(id(p) for group in self._groups() for p in group)

    def has_gradients(self) -> bool:
        """True if any of its parameters has a gradient."""
        return any(p.is_leaf and p.grad is not None for group in self._groups() for p in group)

    def begin_backward(self, place: Place) -> None:
        """Looks whether anything changed the gradients since the last backward call or step."""
        now = self.marks()
        last = self.backward_marks if self.backward_count else self.step_marks
        if last is None or now != last or not any(now):
            self.cleared = True
        self._note_discarded(now, place)
        self.start_marks = now

    def _note_discarded(self, now: list[Mark], place: Place) -> None:
        """Counts a backward call whose gradients are gone although no step, and no hand, has used them."""
        gone = self.backward_marks and now and all(mark is None for mark in now) and not self.used
        if self.backward_count and gone and self.weights() == self.weight_versions and self.backward_at == place:
            self.discarded_count += 1
            self.discarded_at = self.cleared_at

    def replaced(self) -> bool:
        """True if somebody has put gradients of his own in place of those that the last backward call made."""
        now = self.marks()
        last = self.backward_marks or []
        return any(a is not None and b is not None and a[0] != b[0] for a, b in zip(now, last, strict=False))

    def end_backward(self, place: Place) -> None:
        """Notes a backward call if it changed a gradient."""
        now = self.marks()
        if now == self.start_marks:
            return
        self.backward_count += 1
        self.backward_marks = now
        self.backward_at = place
        self.weight_versions = self.weights()
        self.cleared_at = None
        self.used = False

    def end_step(self, *, looked: bool) -> None:
        """Starts the time up to the next step."""
        self.step_marks = self.marks() if looked else None
        self.backward_marks = None
        self.backward_count = 0
        self.cleared = False
        self.cleared_at = None
        self.discarded_count = 0
        self.discarded_at = None
        self.leaf_keys = set()
        self.leaves_complete = True

    def _groups(self) -> list[list[torch.Tensor]]:
        optimizer = self.ref()
        return parameters_of(optimizer) if optimizer is not None else []


def _first_with_grad(group: list[torch.Tensor]) -> int | None:
    for position, parameter in enumerate(group[:_SEARCHED]):
        if parameter.is_leaf and parameter.grad is not None:
            return position
    return None


def _mark(parameter: torch.Tensor) -> Mark:
    gradient = parameter.grad if parameter.is_leaf else None
    return None if gradient is None else (id(gradient), gradient._version)


class Ledger:
    """The records of all optimizers that have been seen at work."""

    def __init__(self) -> None:
        self._records: dict[int, OptimizerRecord] = {}
        self.trained: set[int] = set()
        """Keys of modules whose parameters an optimizer has stepped, or which were loaded."""

    def record(self, key: int, optimizer: Any) -> OptimizerRecord:
        """The record of an optimizer, a new one when it is first seen."""
        record = self._records.get(key)
        if record is None:
            record = OptimizerRecord(key, type(optimizer).__name__, weakref.ref(optimizer))
            self._records[key] = record
        return record

    def live(self) -> list[OptimizerRecord]:
        """Records of optimizers that are still alive, the latest ones."""
        gone = [key for key, record in self._records.items() if record.ref() is None]
        for key in gone:
            del self._records[key]
        return list(self._records.values())[-_WATCHED:]

    def stepped_keys(self) -> frozenset[int]:
        """Addresses of the parameters of every living optimizer that has made a step."""
        return frozenset().union(*(record.keys() for record in self.live() if record.step_count))
