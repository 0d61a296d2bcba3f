"""How long a look may take."""

from __future__ import annotations

from time import perf_counter


class Budget:
    """Seconds that may be spent on looking, in pieces.

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
        if self.spent_s < self._least_s:
            return True
        return self.spent_s < self._share_ratio * (perf_counter() - self._start)

    def charge(self, begun: float) -> None:
        """Notes a look that began at `perf_counter()` time `begun`."""
        self.spent_s += perf_counter() - begun

    def deadline(self) -> float:
        """The `perf_counter()` time at which a look that begins now has to stop."""
        now = perf_counter()
        return now + max(self._least_s, self._share_ratio * (now - self._start)) - self.spent_s
