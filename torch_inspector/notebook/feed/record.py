"""What the feed remembers, so that a page that is opened or reloaded can have it: bounded, plain values only."""

from __future__ import annotations

from collections import deque
from typing import Any

from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.sample import Sample
from torch_inspector.notebook.feed.timeline import Timeline

_CELLS = 500
# Sent along while a cell runs, for a page that was reloaded and cannot ask before the cell ends.
_SHORT_SAMPLES = 120
_SHORT_CELLS = 30


class Record:
    """Samples, cells, and the modules and optimizers of the latest one."""

    def __init__(self, host_limit: int | None) -> None:
        self.host_limit = host_limit
        self.timeline = Timeline()
        self.cells: deque[messages.Message] = deque(maxlen=_CELLS)
        self.state: messages.Message = {"modules": [], "optimizers": [], "complete": True}
        self._peaks: dict[str, int] = {}

    def begin(self) -> None:
        """A cell has begun: peaks count anew."""
        self._peaks = {}

    def add(self, sample: Sample) -> None:
        """One more look at memory."""
        self.timeline.add(sample)
        for device, nbytes in sample.bytes_by_device().items():
            self._peaks[device] = max(self._peaks.get(device, 0), nbytes)

    def end(self, run: Any, at_ms: int, steps: int) -> messages.Message:
        """A cell has ended: its row."""
        row = messages.cell_row(run, at_ms, self._peaks, steps)
        self.cells.append(row)
        self.state = messages.state(run.after)
        return row

    def history(self, *, short: bool) -> messages.Message:
        """All of it, or so little that it can be sent every few seconds."""
        samples = self.timeline.latest(_SHORT_SAMPLES) if short else self.timeline.samples
        cells = list(self.cells)[-_SHORT_CELLS:] if short else list(self.cells)
        series = messages.series(samples, self.host_limit)
        return {"complete": not short, "series": series, "cells": cells, "state": self.state}
