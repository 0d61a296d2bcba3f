"""The records of all optimizers, and which parameters and modules are trained."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch_inspector.observe import kinds
from torch_inspector.observe.optimizer_record import OptimizerRecord

# Optimizers looked at per backward call; programs with more are rare and only the latest matter.
_WATCHED = 16
# Addresses of parameters that are remembered.
_SETTLED = 200_000


class Ledger:
    """The records of all optimizers that have been seen at work."""

    def __init__(self) -> None:
        self._records: dict[int, OptimizerRecord] = {}
        self.trained: set[int] = set()
        """Keys of modules whose parameters an optimizer has stepped, or which were loaded, or copied from such."""
        self._looked: set[int] = set()
        self.settled: set[int] = set()
        """Addresses of parameters that an optimizer has had, or that were loaded; may be in use again, so no proof."""

    def record(self, key: int, optimizer: Any) -> OptimizerRecord:
        """The record of an optimizer, a new one when it is first seen."""
        record = self._records.get(key)
        if record is None:
            record = OptimizerRecord(key, kinds.class_name(optimizer), weakref.ref(optimizer))
            self._records[key] = record
            self.settle(record.keys())
        return record

    def forget(self) -> bool:
        """Forgets what was followed so far, as something was missed; True."""
        self._records.clear()
        return True

    def is_new_here(self, number: int) -> bool:
        """True the first time that somebody asks for the module of this number: then its build is looked at."""
        new = number not in self._looked
        self._looked.add(number)
        return new

    def settle(self, keys: Iterable[int]) -> None:
        """Notes parameters that are, or have been, somebody's to train."""
        if len(self.settled) > _SETTLED:
            self.settled.clear()
        self.settled.update(keys)

    def held_keys(self) -> frozenset[int]:
        """Addresses of the parameters of every living optimizer."""
        return frozenset[int]().union(*(record.keys() for record in list(self._records.values())))

    def live(self) -> list[OptimizerRecord]:
        """Records of optimizers that are still alive, the latest ones."""
        gone = [key for key, record in self._records.items() if record.ref() is None]
        for key in gone:
            del self._records[key]
        return list(self._records.values())[-_WATCHED:]

    def stepped_keys(self, besides: int | None = None) -> frozenset[int]:
        """Addresses of the parameters of every living optimizer that has made a step, one left out."""
        records = (record for record in self.live() if record.step_count and record.key != besides)
        return frozenset[int]().union(*(record.keys() for record in records))
