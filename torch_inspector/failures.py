"""What went wrong inside the inspector: caught, counted, logged, shown on request, never raised into a cell."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from dataclasses import dataclass, field
from types import FrameType

_log = logging.getLogger("torch_inspector")
_KEPT = 20
# Of the traceback of each the innermost frames: of a recursion it would be half a million letters.
_FRAMES = 20
# Past whatever an exception class of the user does with the attribute.
_TRACEBACK = BaseException.__dict__["__traceback__"]
# A part that fails this often is left out for the rest of the session: it would only cost time.
_PATIENCE = 5


@dataclass
class Failures:
    """Inner failures of one session, by the part that failed."""

    counts: dict[str, int] = field(default_factory=dict)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def guard(self, part: str, *, interrupts: bool = False) -> Guard:
        """For `with`: swallows and notes what fails in the block.

        Args:
            part: What is being done.
            interrupts: True where no code of the user is running, so that Ctrl-C can only mean our own work. Elsewhere
                an interrupt, and what a signal handler of the user raises, goes on into the user's cell.
        """
        return Guard(self, part, interrupts)

    def note(self, part: str, error: BaseException) -> None:
        """Counts and logs one failure.

        Tracebacks are kept as text, because their frames would keep the user's objects alive.
        """
        self.counts[part] = self.counts.get(part, 0) + 1
        name, trace = type.__dict__["__name__"].__get__(type(error)), _written(error)
        self.recent.append(f"{part}: {name}\n{trace}")
        _log.debug("%s failed: %s\n%s", part, name, trace)

    def swallow(self, part: str, error: BaseException, *, interrupts: bool = False) -> bool:
        """Notes what failed in a part; True if it ends there, False if it is to be raised again: see `guard`."""
        self.note(part, error)
        if isinstance(error, KeyboardInterrupt):
            return interrupts
        return isinstance(error, Exception) and (interrupts or not _from_signal(error))

    def gave_up(self, part: str) -> bool:
        """True if this part has failed so often that it is not tried any more."""
        return self.counts.get(part, 0) >= _PATIENCE


class Guard:
    """Swallows exceptions of one part. A class, not a generator: it stands in the hot path of training steps."""

    __slots__ = ("_failures", "_interrupts", "_part")

    def __init__(self, failures: Failures, part: str, interrupts: bool) -> None:
        self._failures = failures
        self._part = part
        self._interrupts = interrupts

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return error is not None and self._failures.swallow(self._part, error, interrupts=self._interrupts)


def _written(error: BaseException) -> str:
    """The traceback; empty where a cell has broken what it takes to write one, such as `getattr`."""
    try:
        return "".join(traceback.format_tb(_TRACEBACK.__get__(error), limit=-_FRAMES))
    except Exception:  # noqa: BLE001
        return ""


def _from_signal(error: BaseException) -> bool:
    """True if a signal handler written in Python raised it: a function that is given a number and a frame."""
    frames = (frame for frame, _ in traceback.walk_tb(_TRACEBACK.__get__(error)))
    return any(frame.f_code.co_argcount == 2 and _takes_a_frame(frame) for frame in frames)  # noqa: PLR2004


def _takes_a_frame(frame: FrameType) -> bool:
    values = frame.f_locals
    number, interrupted = (values.get(name) for name in frame.f_code.co_varnames[:2])
    return isinstance(number, int) and type(interrupted) is FrameType
