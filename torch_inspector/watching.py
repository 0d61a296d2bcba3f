"""`with torch_inspector.watch() as run:` for scripts, tests and other shells."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torch_inspector import asking, recent
from torch_inspector.facts import Cell, Run
from torch_inspector.observe.observer import TorchObserver
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.session import Session

# A block in a script is looked at once, not after every keystroke of a notebook.
_BUDGET_S = 0.25


class WatchedRun:
    """Becomes a `Run` when the block has ended: it has all of that one's attributes then."""

    def __init__(self) -> None:
        self._run: Run | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._run is None:
            raise AttributeError(f"{name!r} is known when the `with` block has ended")
        return getattr(self._run, name)


@contextmanager
def start(frame: FrameType) -> Iterator[WatchedRun]:
    """Watches the block; findings point at lines of the file that holds it."""
    places, watched = Places(), WatchedRun()
    filename = frame.f_code.co_filename
    source = "".join(linecache.getlines(filename, frame.f_globals))
    places.add(filename, CodeFile(None, 0, source))
    session = Session(lambda: observer, all_pitfalls, lambda: _variables(frame), account=asking.memory)
    session.settings.time_budget_s = _BUDGET_S
    observer = TorchObserver(places, session.failures)
    session.begin(Cell(None, None, source, ""))
    error: BaseException | None = None
    try:
        yield watched
    except BaseException as raised:
        error = raised
        raise
    finally:
        watched._run = session.end(error)
        observer.remove()
        if watched._run is not None:
            recent.note(watched._run)
        del error


def _variables(frame: FrameType) -> dict[str, Any]:
    """Variables of the function (or file) that holds the block."""
    from torch_inspector.observe.locals import locals_of

    with locals_of(frame, asked=True) as values:
        # Its own variables first: a look that runs out of time has seen them.
        return {**values, **{name: value for name, value in frame.f_globals.items() if name not in values}}
