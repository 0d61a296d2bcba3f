"""Follows IPython's cell events, nested and out of step, and opens and closes runs."""

from __future__ import annotations

import dis
import threading
from collections.abc import Callable
from typing import Any

from torch_inspector.facts import Cell, Run
from torch_inspector.notebook.cells import make_cell, nested_cell
from torch_inspector.observe.place import Places
from torch_inspector.session import Session


class CellEvents:
    """Turns `pre_run_cell` and `post_run_cell` into the session's begin and end.

    The cell that loads the extension ends without having begun, the one that unloads it begins without ending,
    `run_cell` inside a cell nests, and cells of subshells run in other threads: only what fits is followed.

    Args:
        shell: The IPython shell.
        session: Gets the cells.
        places: Learns the file name of each cell's code.
        ended: Gets each run when its cell has ended.
    """

    def __init__(self, shell: Any, session: Session, places: Places, ended: Callable[[Run], None]) -> None:
        self._shell = shell
        self._session = session
        self._places = places
        self._ended = ended
        self._running: list[Any] = []
        self._thread = 0
        self._counts_first = _counts_before_event(type(shell))
        self.enabled = True

    def start(self) -> None:
        """Begins to follow."""
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)

    def stop(self) -> None:
        """Follows no more; a run that is open is dropped."""
        for name, callback in (("pre_run_cell", self._before_cell), ("post_run_cell", self._after_cell)):
            if callback in self._shell.events.callbacks[name]:
                self._shell.events.unregister(name, callback)
        self._session.abandon()
        self._running.clear()

    def _before_cell(self, info: Any) -> None:
        with self._session.failures.guard("pre_run_cell", interrupts=True):
            if self._running and self._thread != threading.get_ident():
                return
            if not self.enabled:
                return
            outer = self._session.cell if self._running else None
            self._running.append(info)
            self._thread = threading.get_ident()
            if len(self._running) == 1:
                self._begin(info)
            elif outer is not None:
                self._nest(info, outer)

    def _begin(self, info: Any) -> None:
        raw, code = info.raw_cell or "", self._code(info)
        cell = make_cell(raw, code, self._number(info), getattr(info, "cell_id", None))
        self._remember(raw, cell, self._number(info))
        self._session.begin(cell)

    def _nest(self, info: Any, outer: Cell) -> None:
        cell = nested_cell(info.raw_cell or "", self._code(info), outer)
        if cell is not None:
            self._remember(info.raw_cell, cell, self._number(info))

    def _number(self, info: Any) -> int:
        """The execution count of the cell: newer versions of IPython have counted on when the event comes."""
        ahead = self._counts_first and info.store_history and not info.silent
        return int(self._shell.execution_count) - (1 if ahead else 0)

    def _code(self, info: Any) -> str:
        code = getattr(info, "transformed_cell", None)
        if code is None:
            try:
                code = self._shell.transform_cell(info.raw_cell or "")
            except Exception:  # noqa: BLE001
                code = ""
        return str(code)

    def _remember(self, raw: str, cell: Cell, number: int) -> None:
        name = self._shell.compile.get_code_name(raw, cell.code, number)
        self._places.add_cell(name, cell)

    def _after_cell(self, result: Any = None) -> None:
        with self._session.failures.guard("post_run_cell", interrupts=True):
            if not self._running or self._thread != threading.get_ident():
                return
            info = getattr(result, "info", None)
            position = next((i for i, one in enumerate(self._running) if one is info), None)
            if position is None and info is not None:
                # An interrupt between two steps of `await` ends the cell under a new description.
                same = (i for i, one in enumerate(self._running) if one.raw_cell == info.raw_cell)
                position = next(same, None)
            if position is None:
                if result is not None:
                    return
                position = len(self._running) - 1
            del self._running[position:]
            if not self._running:
                self._end(result)

    def _end(self, result: Any) -> None:
        error = None
        if result is not None:
            error = result.error_before_exec or result.error_in_exec
        run = self._session.end(error)
        if run is not None:
            self._ended(run)


def _counts_before_event(shell_class: type[Any]) -> bool:
    """True if this IPython raises the execution count before `pre_run_cell`, read from the order of its own steps."""
    counted = 0
    for step in dis.get_instructions(shell_class.run_cell_async):
        if step.argval == "pre_run_cell":
            break
        counted += step.opname == "STORE_ATTR" and step.argval == "execution_count"
    return counted > 1
