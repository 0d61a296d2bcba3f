"""The thread that keeps the sidebar informed: looks at counters of memory, sends what is due, sleeps.

It looks at no object of the user and walks no graph. All that it remembers is its own; other threads only lay
something down and wake it.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple, Protocol

from torch_inspector.facts import Cell, MomentFact, Run
from torch_inspector.failures import Failures
from torch_inspector.findings import Finding
from torch_inspector.notebook.feed.cadence import CHANGED_NBYTES, Cadence
from torch_inspector.notebook.feed.messages import Message, devices, early_findings, envelope, progress
from torch_inspector.notebook.feed.record import Record
from torch_inspector.notebook.feed.sample import Sample, host_limit, now_ms, take_sample
from torch_inspector.notebook.feed.wishes import Wishes

_PART, _EARLY = "feed", "feed early"
_SHORT_HISTORY_EVERY = 10
# A look that comes this much late was kept from running, by C code that holds the interpreter.
_LATE_S = 2.0
# The running cell is judged after one second, two, four, …: a training loop shows its mistakes in its first steps.
_FIRST_JUDGED_S = 1.0


class Sight(Protocol):
    """What the feed may see of the session. Each is asked from the feed's thread and only reads."""

    def cell(self) -> Cell | None:
        """The running cell."""

    def torch(self) -> Any:
        """The module, once the user has imported it and it is watched."""

    def early(self) -> tuple[Finding, ...]:
        """Findings of the running cell that are certain already."""

    def steps(self) -> int:
        """Optimizer steps of the running cell so far."""


class Ended(NamedTuple):
    """A cell that has ended."""

    run: Run
    at_ms: int
    steps: int


class Feed:
    """One feed of one kernel.

    Args:
        send: Broadcasts a message; called from the feed's thread only.
        sight: What the feed may see.
        failures: Counts what goes wrong.
    """

    def __init__(self, send: Callable[[Message], None], sight: Sight, failures: Failures) -> None:
        self.run = uuid.uuid4().hex
        self._send, self._sight, self._failures = send, sight, failures
        self._record = Record(None)
        self._cadence = Cadence()
        self._cell: Cell | None = None
        self._sent: dict[str, int] = {}
        self._looks = self._published = 0
        self._next_look = 0.0
        self._ended: deque[Ended] = deque()
        self._outbox: deque[Message] = deque()
        self._early: tuple[Finding, ...] = ()
        self._judge_at = 0.0
        self._wishes = self._wished = Wishes()
        self._greeted = False
        self._stopped = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="torch_inspector feed", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Says goodbye and ends the thread."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1)

    # laid down by other threads -------------------------------------------------

    def begin(self, _info: Any = None) -> None:
        """A cell begins; which one is asked for later."""
        self._wake.set()

    def end(self, run: Run) -> None:
        """A cell has ended and was judged."""
        self._ended.append(Ended(run, now_ms(), run.trace.count("step")))
        self._wake.set()

    def greet(self) -> None:
        """Somebody new wants the history."""
        self._greeted = True
        self._wake.set()

    def wish(self, wishes: Wishes) -> None:
        """The user has changed the settings."""
        self._wished = wishes
        self._wake.set()

    def answer(self, op: str, **fields: Any) -> None:
        """Something that was asked for is there."""
        self._outbox.append(envelope(self.run, op, now_ms(), **fields))
        self._wake.set()

    # read by other threads -------------------------------------------------------

    def moments(self, began_ms: int) -> tuple[MomentFact, ...]:
        """Memory and steps since a moment, as far as there were looks."""
        samples = [sample for sample in list(self._record.timeline.samples) if sample.at_ms >= began_ms]
        return tuple(
            MomentFact((sample.at_ms - began_ms) / 1000, device, nbytes, sample.steps)
            for sample in samples
            for device, nbytes in sample.bytes_by_device().items()
        )

    # the thread -----------------------------------------------------------------

    def _work(self) -> None:
        with self._failures.guard(_PART):
            self._record = Record(host_limit())
        while not self._stopped and not self._failures.gave_up(_PART):
            with self._failures.guard(_PART):
                self._turn(monotonic())
            self._wake.wait(max(self._next_look - monotonic(), 0.01))
            self._wake.clear()
        with self._failures.guard(_PART):
            self._say("bye")

    def _turn(self, now: float) -> None:
        self._heed(now)
        self._take_ended(now)
        self._follow(now)
        if now >= self._next_look:
            late = self._looks > 0 and now > self._next_look + _LATE_S
            self._next_look = now + self._cadence.pause(now)
            self._look(now, gap=late)
        if self._greeted:
            self._greeted = False
            self._say("history", **self._record.history(short=False))
        while self._outbox:
            self._send(self._outbox.popleft())

    def _heed(self, now: float) -> None:
        """Takes over settings that were changed."""
        if self._wishes is self._wished:
            return
        self._wishes = wishes = self._wished
        self._cadence.interval_s = wishes.interval_s
        self._record.timeline.limit(wishes.history)
        self._next_look = min(self._next_look, now + self._cadence.pause(now))
        if not wishes.findings:
            self._early = ()

    def _take_ended(self, now: float) -> None:
        while self._ended:
            ended = self._ended.popleft()
            row = self._record.end(ended.run, ended.at_ms, ended.steps)
            self._say("cell", cell=row, state=self._record.state)
            self._record.begin()
            self._next_look = now

    def _follow(self, now: float) -> None:
        """Notices that a cell has begun or ended."""
        cell = self._sight.cell()
        if _same(cell, self._cell):
            return
        self._cell = cell
        if cell is None:
            self._cadence.end()
            return
        self._cadence.begin(now)
        self._early, self._judge_at = (), now + _FIRST_JUDGED_S
        self._record.begin()
        # The first look comes when the cell has lasted a while: a thousand quick cells must not pay for it.
        self._next_look = now + self._cadence.pause(now)

    def _look(self, now: float, *, gap: bool) -> None:
        sampling = self._wishes.sampling
        sample = take_sample(self._sight.torch(), gap=gap) if sampling else Sample(now_ms(), ())
        self._looks += 1
        due = self._cadence.is_due(now, changed=sampling and self._differs(sample))
        # Without looks at memory there is nothing to say of an idle kernel.
        due = due and (sampling or self._cell is not None)
        if sampling and (due or self._cell is not None):
            self._record.add(sample._replace(steps=0 if self._cell is None else self._sight.steps()))
        if due:
            self._publish(sample, now)

    def _publish(self, sample: Sample, now: float) -> None:
        self._sent = sample.bytes_by_device()
        began, cell = self._cadence.began, self._cell
        running, found = None, []
        if cell is not None and began is not None:
            self._judge(now, began)
            running = progress(cell, now - began, self._sight.steps())
            found = early_findings(self._early, cell)
        seen = devices(sample.memory, self._record.host_limit)
        self._say("sample", at_ms=sample.at_ms, cell=running, devices=seen, gap=sample.gap, findings=found)
        self._published += 1
        if running is not None and self._published % _SHORT_HISTORY_EVERY == 0:
            self._say("history", **self._record.history(short=True))

    def _judge(self, now: float, began: float) -> None:
        if not self._wishes.findings or now < self._judge_at or self._failures.gave_up(_EARLY):
            return
        self._judge_at = now + (now - began)
        with self._failures.guard(_EARLY):
            self._early = self._sight.early()

    def _differs(self, sample: Sample) -> bool:
        now = sample.bytes_by_device()
        return any(abs(now.get(name, 0) - self._sent.get(name, 0)) > CHANGED_NBYTES for name in {*now, *self._sent})

    def _say(self, op: str, *, at_ms: int | None = None, **fields: Any) -> None:
        self._send(envelope(self.run, op, now_ms() if at_ms is None else at_ms, **fields))


def _same(one: Cell | None, other: Cell | None) -> bool:
    """True for one execution, whose `Cell` may have been replaced by another with the report wanted."""
    if one is None or other is None:
        return one is other
    return (one.number, one.id, one.source) == (other.number, other.id, other.source)
