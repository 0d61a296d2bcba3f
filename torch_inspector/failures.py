"""What went wrong inside the inspector: caught, counted, logged, shown on request, never raised into a cell."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_log = logging.getLogger("torch_inspector")
_KEPT = 20
# A part that fails this often is left out for the rest of the session: it would only cost time.
_PATIENCE = 5


@dataclass
class Failures:
    """Inner failures of one session, by the part that failed."""

    counts: dict[str, int] = field(default_factory=dict)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))

    @contextmanager
    def guard(self, part: str) -> Iterator[None]:
        """Swallows and notes every exception of the block, interrupts included.

        Tracebacks are kept as text, because their frames would keep the user's objects alive.
        """
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            self.note(part, error)

    def note(self, part: str, error: BaseException) -> None:
        """Counts and logs one failure."""
        self.counts[part] = self.counts.get(part, 0) + 1
        lines = traceback.format_tb(error.__traceback__)
        self.recent.append(f"{part}: {type(error).__name__}\n{''.join(lines)}")
        _log.debug("%s failed: %s\n%s", part, type(error).__name__, "".join(lines))

    def gave_up(self, part: str) -> bool:
        """True if this part has failed so often that it is not tried any more."""
        return self.counts.get(part, 0) >= _PATIENCE
