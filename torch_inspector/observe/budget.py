"""How long a look may take."""

from __future__ import annotations

from time import perf_counter, thread_time


class Budget:
    """Seconds that may be spent on looking, in pieces.

    Counted is processor time: what a look costs is the same on a busy machine, though it takes longer there.

    Args:
        least_s: Always allowed.
        share_ratio: Part of the time since the start that is allowed as well, if that is more.
    """

    def __init__(self, least_s: float, share_ratio: float = 0.05) -> None:
        self._start = perf_counter()
        self._least_s = least_s
        self._share_ratio = share_ratio
        self.spent_s = 0.0

    def open(self) -> bool:
        """True if something may still be looked at."""
        return self.spent_s < self._least_s or self.spent_s < self._share_s()

    def charge(self, begun: float) -> None:
        """Notes a look that began at `thread_time()` time `begun`."""
        self.spent_s += thread_time() - begun

    def deadline(self) -> float:
        """The `thread_time()` time at which a look that begins now has to stop."""
        left_s = max(self._least_s, self._share_s()) - self.spent_s
        return thread_time() + left_s

    def _share_s(self) -> float:
        return self._share_ratio * (perf_counter() - self._start)
