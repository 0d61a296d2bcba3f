"""When memory is looked at, and which looks are sent: often in a young cell, never in an idle kernel.

Each message counts as activity of the kernel, so an idle one must be silent or it would never be culled; and the server
keeps all messages for a browser that is gone, so a cell of many hours must send few.
"""

from __future__ import annotations

QUICK_S = 0.5
_STEADY_S = 2.0
_SLOW_S = 5.0
# A minute of a new cell is watched by somebody; after ten minutes nobody looks for tenths of seconds.
_QUICK_FOR_S = 60.0
_STEADY_FOR_S = 600.0
_LONGEST_LOOK_S = 1.0
# What is freed late (by a collection, by another thread) shows within these looks after a cell.
_AFTER_CELL = 3
# Less than this in an idle kernel is the allocator's breath.
CHANGED_NBYTES = 4 << 20


class Cadence:
    """Asked at each look whether it is sent. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._sent = float("-inf")
        self._left = _AFTER_CELL
        self.interval_s = QUICK_S
        """Seconds between two looks in a young cell, and after one."""

    @property
    def began(self) -> float | None:
        """When the running cell began; None between cells."""
        return self._began

    def begin(self, now: float) -> None:
        """A cell has begun."""
        self._began = now

    def end(self) -> None:
        """The cell has ended."""
        self._began, self._left = None, _AFTER_CELL

    def pause(self, now: float) -> float:
        """How long to wait before the next look."""
        if self._began is None:
            return self.interval_s if self._left else _LONGEST_LOOK_S
        return min(self._interval(now), max(_LONGEST_LOOK_S, self.interval_s))

    def is_due(self, now: float, *, changed: bool) -> bool:
        """True if the look of this moment is sent; `changed` says that memory differs from what was sent last."""
        if self._began is None:
            due = self._left > 0 or changed
            self._left = max(self._left - 1, 0)
        else:
            # A tenth of tolerance, or a timer that is early by a little would halve the rate.
            due = now - self._sent >= 0.9 * self._interval(now)
        if due:
            self._sent = now
        return due

    def _interval(self, now: float) -> float:
        age = 0.0 if self._began is None else now - self._began
        slowest = QUICK_S if age < _QUICK_FOR_S else _STEADY_S if age < _STEADY_FOR_S else _SLOW_S
        return self.interval_s if slowest == QUICK_S else max(slowest, self.interval_s)
