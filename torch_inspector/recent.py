"""The latest runs of this process, whoever made them: what `last_run()` and `runs()` give."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts import Run

_runs: deque[Run] = deque(maxlen=50)


def note(run: Run) -> None:
    """Adds a run."""
    _runs.append(run)


def last_run() -> Run | None:
    """The latest run, or None before the first."""
    return _runs[-1] if _runs else None


def runs() -> tuple[Run, ...]:
    """The latest runs, oldest first."""
    return tuple(_runs)
