"""What the feed's thread may see of a loaded extension: a name, a module, a number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import Cell
from torch_inspector.findings import Finding
from torch_inspector.session import Session

if TYPE_CHECKING:
    from torch_inspector.observe.observer import TorchObserver


class SessionSight:
    """Reads, and changes nothing.

    Args:
        session: Knows the running cell.
        observer: Gives the observer of torch, or None before there is one.
    """

    def __init__(self, session: Session, observer: Callable[[], TorchObserver | None]) -> None:
        self._session = session
        self._observer = observer

    def cell(self) -> Cell | None:
        """The running cell."""
        return self._session.cell

    def torch(self) -> Any:
        """The module once it is watched: before that it may still be half imported."""
        return None if self._observer() is None else sys.modules.get("torch")

    def early(self) -> tuple[Finding, ...]:
        """What is certain of the running cell already."""
        observer = self._observer()
        return () if observer is None else self._session.early(observer.so_far())

    def steps(self) -> int:
        """Optimizer steps of the running cell so far."""
        observer = self._observer()
        return 0 if observer is None else observer.step_count()
