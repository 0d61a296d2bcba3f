"""What can be seen while the user has not imported torch: the text of a cell and the memory of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_inspector.facts import Cell, ErrorFact, MemoryFact, Snapshot, Trace
from torch_inspector.observe.errors import error_fact
from torch_inspector.observe.memory import memory_facts
from torch_inspector.observe.place import Places
from torch_inspector.observe.source import source_trace


class HostObserver:
    """Stands in for the torch observer until there is a torch to watch. Puts nothing in place."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def open(self, budget_s: float) -> None:
        """Nothing to start."""

    def foresee(self, cell: Cell, names: Mapping[str, Any]) -> None:
        """Nothing to look at."""

    def close(self) -> None:
        """Nothing to put back."""

    def memory(self) -> tuple[MemoryFact, ...]:
        """Memory of the process."""
        return memory_facts(None)

    def trace(self, cell: Cell) -> Trace:
        """What the text says."""
        return source_trace(cell)

    def snapshot(
        self, names: Mapping[str, Any], history: Mapping[Any, Any], cell: Cell, budget_s: float, *, full: bool
    ) -> Snapshot:
        """Memory only."""
        del names, history, cell, budget_s, full
        return Snapshot(memory=self.memory())

    def error(self, error: BaseException) -> ErrorFact:
        """What is known of an exception."""
        return error_fact(error, self._places)
