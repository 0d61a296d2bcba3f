"""What a front end may ask about the user's memory and have silenced, and what it is answered.

The data comes from outside: every field is checked, and none of it is run or looked up as code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_inspector import asking
from torch_inspector.account import HoldersReport, MemoryReport
from torch_inspector.facts import Snapshot
from torch_inspector.notebook import freeing
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.muting import SCOPES, Wish

if TYPE_CHECKING:
    from torch_inspector.notebook.muting import Muting

Answer = tuple[str, messages.Message]
"""Its `op`, and its fields."""

_BUDGET_S = 3.0
_LONGEST_PATH = 2000
_LONGEST_SLUG = 200
_LARGEST = 2**53
_LOOKS = ("account", "holders", "free")
_ITEMS = ("outputs", "cycles", "cache", "exception")


class Answers:
    """Answers requests, for the sidebar and for each panel that is a widget.

    Args:
        shell: The IPython shell.
        is_busy: True while a cell runs. Its objects change under a look, so there is none then.
        latest: What held after the latest cell.
        muting: Has pitfalls stay silent.
    """

    def __init__(self, shell: Any, is_busy: Callable[[], bool], latest: Callable[[], Snapshot], muting: Muting) -> None:
        self._shell = shell
        self._is_busy = is_busy
        self._latest = latest
        self._muting = muting
        self._known: dict[str, Callable[[dict[str, Any]], list[Answer]]] = {
            "account": self._account,
            "holders": self._holders,
            "free": self._free,
            "mute": self._mute,
        }

    def to(self, data: Any) -> list[Answer]:
        """What one request is told, in order; nothing if it is not understood."""
        if type(data) is not dict or data.get("v") != messages.VERSION:
            return []
        word = data.get("ask")
        act = self._known.get(word) if type(word) is str else None
        return [] if act is None else act(data)

    def must_wait(self, data: Any) -> bool:
        """True for a look at objects that another thread asks for: the main thread can have it when no cell runs."""
        word = data.get("ask") if type(data) is dict else None
        return type(word) is str and word in _LOOKS and _is_elsewhere()

    def _account(self, _data: dict[str, Any]) -> list[Answer]:
        return self._refused("account") or [self._told(asking.memory(_BUDGET_S, self._shell))]

    def _holders(self, data: dict[str, Any]) -> list[Answer]:
        path = data.get("path")
        if type(path) is not str or len(path) > _LONGEST_PATH:
            return []
        if refused := self._refused("holders"):
            return refused
        met = asking.followed(path, self._shell)
        report: HoldersReport | None
        if met.found:
            report = asking.holders_of(met.thing, path, _BUDGET_S, self._shell)
        else:
            report = asking.holders_of_row(path, _BUDGET_S, self._shell)
        return [("holders", messages.holders(path, report, gone=met.ends))]

    def _free(self, data: dict[str, Any]) -> list[Answer]:
        """Lets go of what `%torchcheck free` would, item by item; the page has asked the user before."""
        item, path = data.get("item"), data.get("path", "")
        if item not in _ITEMS or type(path) is not str or len(path) > _LONGEST_PATH:
            return []
        if refused := self._refused("free"):
            return refused
        before = asking.memory(_BUDGET_S, self._shell)
        returned = freeing.let_go_of(self._shell, before, item, path)
        after = asking.memory(_BUDGET_S, self._shell)
        freed = returned or max(_nbytes(before) - _nbytes(after), 0)
        return [("freed", messages.freed(item, path, freed)), self._told(after)]

    def _mute(self, data: dict[str, Any]) -> list[Answer]:
        """Touches settings only, so a subshell may do it while a cell runs."""
        wish = _read_wish(data)
        if wish is None:
            return []
        path = error = ""
        try:
            path = self._muting.heed(wish)
        except ValueError as refused:
            error = str(refused)
        return [("muted", messages.muted(wish, path, error))]

    def _told(self, report: MemoryReport) -> Answer:
        return "account", messages.account(report, self._latest())

    def _refused(self, word: str) -> list[Answer]:
        """Says so where a look at all objects would disturb or be disturbed."""
        return [("refused", {"ask": word})] if _is_elsewhere() or self._is_busy() else []


def _is_elsewhere() -> bool:
    return threading.current_thread() is not threading.main_thread()


def _read_wish(data: dict[str, Any]) -> Wish | None:
    """What is to be silent where; None if the request does not say it in the right form."""
    slug, scope, on = data.get("slug"), data.get("scope"), data.get("on", True)
    cell, line = data.get("cell"), data.get("line")
    if type(slug) is not str or len(slug) > _LONGEST_SLUG or type(scope) is not str or scope not in SCOPES:
        return None
    if type(on) is not bool or not _is_number(cell) or not _is_number(line):
        return None
    return Wish(slug, scope, cell, line, on)


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= _LARGEST)


def _nbytes(report: MemoryReport) -> int:
    return sum(row.nbytes for row in report.rows)
