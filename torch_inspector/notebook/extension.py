"""Loads and unloads: everything that `%load_ext torch_inspector` puts into a shell, and takes out again."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython import get_ipython
from traitlets import TraitError

from torch_inspector import asking, recent
from torch_inspector.facts import Run
from torch_inspector.notebook.cells import files_of, take_out_report
from torch_inspector.notebook.events import CellEvents
from torch_inspector.notebook.feed.opening import OpenFeed, open_feed
from torch_inspector.notebook.feed.sample import now_ms
from torch_inspector.notebook.magics import Torchcheck, line_completer
from torch_inspector.notebook.muting import Muting
from torch_inspector.notebook.options import ReportFiles
from torch_inspector.notebook.panels import Panels
from torch_inspector.notebook.settings import TorchInspector
from torch_inspector.observe.arrival import TorchArrival
from torch_inspector.observe.place import Places
from torch_inspector.outcome import outcome_of
from torch_inspector.pitfalls import all_pitfalls, find_pitfall
from torch_inspector.session import Observer, Session

if TYPE_CHECKING:
    from torch_inspector.account import MemoryReport
    from torch_inspector.observe.observer import TorchObserver
    from torch_inspector.pitfall import Pitfall
    from torch_inspector.views.card import Card
    from torch_inspector.views.widget import RunPanel

_MAGIC = "torchcheck"
_KEYS = (f"%{_MAGIC}", f"%%{_MAGIC}")
_OLDEST_TORCH = (2, 4)
_loaded: dict[int, Extension] = {}


def _pitfalls() -> tuple[Pitfall, ...]:
    """All of them once torch is there: who never imports it does not wait for them to load."""
    return all_pitfalls() if "torch" in sys.modules else ()


class Extension:
    """One loaded extension in one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._places = Places()
        self._torch_observer: TorchObserver | None = None
        self._told_old = False
        self.session = Session(self._observer, _pitfalls, lambda: shell.user_ns, self._history, self._account)
        try:
            self.settings = TorchInspector(self.session.settings, parent=shell)
        except TraitError as error:
            self.settings = TorchInspector(self.session.settings)
            self.say(f"torch_inspector goes on with its default settings: {error}")
        self.muting = Muting(self.settings, self.session, shell)
        self.events = CellEvents(shell, self.session, self._places, self._ended)
        self._arrival = TorchArrival(self._torch_arrived)
        self._torchcheck = Torchcheck(self)
        self._feed: OpenFeed | None = None
        self.panels = Panels(self._answer)

    def install(self) -> None:
        """Puts everything in place."""
        self.shell.configurables.append(self.settings)
        self.shell.register_magic_function(self._torchcheck, "line_cell", _MAGIC)
        self.shell.input_transformers_cleanup.append(take_out_report)
        for key in _KEYS:
            self.shell.set_hook("complete_command", line_completer(self._torchcheck), str_key=key)
        self._arrival.install()
        self.events.start()
        if self.settings.sidebar:
            self._feed = open_feed(self.shell, self.session, lambda: self._torch_observer, self.muting)

    def remove(self) -> None:
        """Takes everything out again."""
        self.events.stop()
        self.muting.ended = True
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        if self._torch_observer is not None:
            self._torch_observer.remove()
            self._torch_observer = None
        self._arrival.remove()
        if take_out_report in self.shell.input_transformers_cleanup:
            self.shell.input_transformers_cleanup.remove(take_out_report)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(_MAGIC, None)
        for key in _KEYS:
            self.shell.strdispatchers["complete_command"].strs.pop(key, None)
        if self.settings in self.shell.configurables:
            self.shell.configurables.remove(self.settings)

    # observers ----------------------------------------------------------------

    def _observer(self) -> Observer:
        """The observer of torch once the user has imported it, of the host until then."""
        if self._torch_observer is None and "torch" in sys.modules and self._new_enough():
            from torch_inspector.observe.observer import TorchObserver

            self._torch_observer = TorchObserver(self._places, self.session.failures)
        if self._torch_observer is not None:
            return self._torch_observer
        from torch_inspector.observe.host import HostObserver

        return HostObserver(self._places)

    def _new_enough(self) -> bool:
        version = str(getattr(sys.modules["torch"], "__version__", ""))
        parts = version.split("+", maxsplit=1)[0].split(".")[:2]
        known = tuple(int(part) for part in parts if part.isdigit())
        if len(known) < 2:  # noqa: PLR2004  (still being imported, or not torch at all)
            return False
        if known < _OLDEST_TORCH and not self._told_old:
            self._told_old = True
            self.say(f"torch_inspector needs torch 2.4 or newer to watch it; this is {version[:20]}")
        return known >= _OLDEST_TORCH

    def _torch_arrived(self) -> None:
        with self.session.failures.guard("arrival"):
            # Here, where the time is hidden behind that of torch: the sidebar judges cells that still run.
            all_pitfalls()
            self.session.watch_now()

    def _history(self) -> dict[Any, Any]:
        out = self.shell.user_ns.get("_oh")
        return out if type(out) is dict else {}

    def _account(self, budget_s: float) -> MemoryReport:
        return asking.memory(budget_s, self.shell)

    # showing ------------------------------------------------------------------

    def _ended(self, run: Run) -> None:
        recent.note(run)
        if self._feed is not None:
            self._feed.feed.end(run)
        with self.session.failures.guard("display"):
            self.panels.end(run.cell)
            if run.findings or run.cell.wants_report or _became_clean(run):
                self.draw(lambda: self._show_run(run))

    def _show_run(self, run: Run) -> None:
        if self.settings.panel == "off" and not run.cell.wants_report:
            return
        from torch_inspector.notebook.display import message_of
        from torch_inspector.views.explain import Drawing, run_card
        from torch_inspector.views.report import report_card

        if self._feed is not None and run.cell.wants_report:
            began_ms = now_ms() - round(1000 * (run.duration_s + run.inspection_s))
            looks = self._feed.feed.moments(began_ms)
            run = replace(run, moments=tuple(look for look in looks if look.at_s <= run.duration_s))
        drawing = Drawing.of(run, all_pitfalls(), self.settings.docs_url, self.session.failures)
        card = report_card(drawing) if run.cell.wants_report else run_card(drawing)
        message = message_of(card, drawing, self._feed.feed.run if self._feed is not None else "")
        panel = self.show(card, message, live=run.cell.wants_report)
        self.panels.shown(run.cell, panel, card, message)
        if run.cell.wants_report:
            self._write(files_of(run.cell.source), card, message)

    def _write(self, files: ReportFiles, card: Card, message: dict[str, Any]) -> None:
        if any(files):
            from torch_inspector.notebook.writing import write_report

            self.say("\n".join(write_report(files, card, message)))

    def show(self, card: Card, message: dict[str, Any] | None = None, *, live: bool = False) -> RunPanel | None:
        """Puts a card under the cell; gives the widget that it became as well, if any."""
        from torch_inspector.notebook.display import Manner, show_card

        return show_card(self.shell, card, message, Manner(self.settings.panel, live, self._answer))

    def _answer(self, asked: Any, tell: Callable[[dict[str, Any]], None]) -> None:
        """Answers a widget; newer front ends ask in a thread beside the running cell."""
        from torch_inspector.notebook.feed.opening import answers_of

        with self.session.failures.guard("request", interrupts=True):
            if self._feed is not None:
                self._feed.repair_soon()
            answers = answers_of(self.shell, self.session, self.muting)
            if answers.must_wait(asked):
                self.shell.kernel.io_loop.add_callback(self._answer, asked, tell)
                return
            for op, fields in answers.to(asked):
                tell({"op": op, **fields})

    def draw(self, draw: Callable[[], None]) -> None:
        """Draws something without moving the user's random numbers: rich takes some of them when it is imported."""
        state = random.getstate()
        try:
            draw()
        finally:
            random.setstate(state)

    def show_state(self) -> None:
        """`%torchcheck`: what holds now."""

        def draw() -> None:
            from torch_inspector.views.report import state_card

            self.show(state_card(self.session.state()))

        self.draw(draw)

    def show_list(self) -> None:
        """`%torchcheck list`."""

        def draw() -> None:
            from torch_inspector.views.explain import list_card

            self.show(list_card(all_pitfalls(), self.settings.muted))

        self.draw(draw)

    def show_page(self, slug: str) -> None:
        """`%torchcheck explain`."""

        def draw() -> None:
            from torch_inspector.views.explain import page_card

            self.show(page_card(find_pitfall(slug)))

        self.draw(draw)

    def say(self, text: str) -> None:
        """Answers with plain text."""
        self.shell.display_pub.publish({"text/plain": text}, {})

    # acting -------------------------------------------------------------------

    def switch(self, *, on: bool) -> None:
        """Begins or stops to look at cells."""
        self.events.enabled = on
        if not on:
            self.session.abandon()
        if self._torch_observer is not None:
            (self._torch_observer.install if on else self._torch_observer.remove)()

    def run_with_report(self, code: str) -> None:
        """Runs code as a nested cell and asks for the report of the cell around it."""
        self.session.want_report()
        self.shell.run_cell(code)


def _became_clean(run: Run) -> bool:
    """True once: in the run after the one that last found something in this cell."""
    outcome = outcome_of(run)
    return outcome is not None and bool(outcome.fixed or outcome.gone)


def load(shell: Any) -> None:
    """Puts the extension into a shell, once."""
    if id(shell) not in _loaded:
        extension = Extension(shell)
        extension.install()
        _loaded[id(shell)] = extension


def unload(shell: Any) -> None:
    """Takes the extension out of a shell."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.remove()


def panel_here() -> RunPanel:
    """A widget that follows the panels of the shell that runs.

    Raises:
        RuntimeError: the extension is not loaded there, or there is no shell.
        ImportError: anywidget is not installed.
    """
    extension = _loaded.get(id(get_ipython()))
    if extension is None:
        raise RuntimeError("there is no panel before %load_ext torch_inspector")
    return extension.panels.follow()
