"""Starts the feed where there is a kernel to send through, and ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import Snapshot
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.answers import Answers
from torch_inspector.notebook.feed.feed import Feed
from torch_inspector.notebook.feed.prompt import Prompt
from torch_inspector.notebook.feed.requests import Requests
from torch_inspector.notebook.feed.sight import SessionSight

if TYPE_CHECKING:
    from torch_inspector.notebook.feed.channel import Channel
    from torch_inspector.notebook.muting import Muting, Wish
    from torch_inspector.observe.observer import TorchObserver
    from torch_inspector.session import Session


class OpenFeed:
    """A running feed with its channel and its place among the shell's events."""

    def __init__(
        self, shell: Any, session: Session, observer: Callable[[], TorchObserver | None], muting: Muting
    ) -> None:
        from torch_inspector.notebook.feed.channel import Channel

        self._shell = shell
        self._session = session
        self._channel: Channel = Channel(shell.kernel, self._asked)
        self.feed = Feed(self._channel.send, SessionSight(session, observer), session.failures)
        self._requests = Requests(self.feed, answers_of(shell, session, muting))
        self._prompt = Prompt(shell.kernel, session.failures)
        self._callbacks = (
            ("pre_run_cell", self.feed.begin),
            ("pre_run_cell", self._prompt.begin),
            ("post_run_cell", self._prompt.end),
        )
        muting.tell = self._unmuted
        self._channel.register()
        for event, callback in self._callbacks:
            shell.events.register(event, callback)
        self.feed.start()

    def close(self) -> None:
        """Ends all of it."""
        for event, callback in self._callbacks:
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)
        self._channel.unregister()
        self.feed.stop()

    def repair_soon(self) -> None:
        """Called while a request is handled beside the running cell."""
        self._prompt.repair_soon()

    def _unmuted(self, wish: Wish) -> None:
        self.feed.answer("muted", **messages.muted(wish, "", ""))

    def _asked(self, data: Any) -> None:
        with self._session.failures.guard("request", interrupts=True):
            self._requests.take(data)
            self.repair_soon()


def answers_of(shell: Any, session: Session, muting: Muting) -> Answers:
    """Answers about a session."""

    def latest() -> Snapshot:
        return session.runs[-1].after if session.runs else Snapshot()

    return Answers(shell, lambda: session.cell is not None, latest, muting)


def open_feed(
    shell: Any, session: Session, observer: Callable[[], TorchObserver | None], muting: Muting
) -> OpenFeed | None:
    """The feed, or None in a terminal and in kernels that are not ipykernel's."""
    kernel = getattr(shell, "kernel", None)
    if getattr(kernel, "session", None) is None or getattr(kernel, "iopub_socket", None) is None:
        return None
    with session.failures.guard("feed"):
        return OpenFeed(shell, session, observer, muting)
    return None
