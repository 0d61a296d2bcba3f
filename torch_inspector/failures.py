"""What went wrong inside the inspector: caught, counted, logged, shown on request, never raised into a cell."""

from __future__ import annotations

import logging
import traceback
from collections import deque
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

    def guard(self, part: str) -> Guard:
        """For `with`: swallows and notes every exception of the block, interrupts included."""
        return Guard(self, part)

    def note(self, part: str, error: BaseException) -> None:
        """Counts and logs one failure.

        Tracebacks are kept as text, because their frames would keep the user's objects alive.
        """
        self.counts[part] = self.counts.get(part, 0) + 1
        lines = traceback.format_tb(error.__traceback__)
        self.recent.append(f"{part}: {type(error).__name__}\n{''.join(lines)}")
        _log.debug("%s failed: %s\n%s", part, type(error).__name__, "".join(lines))

    def gave_up(self, part: str) -> bool:
        """True if this part has failed so often that it is not tried any more."""
        return self.counts.get(part, 0) >= _PATIENCE


class Guard:
    """Swallows exceptions of one part. A class, not a generator: it stands in the hot path of training steps."""

    __slots__ = ("_failures", "_part")

    def __init__(self, failures: Failures, part: str) -> None:
        self._failures = failures
        self._part = part

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None or not isinstance(error, (Exception, KeyboardInterrupt)):
            return False
        self._failures.note(self._part, error)
        return True
