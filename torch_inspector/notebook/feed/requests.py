"""What the sidebar may ask for.

The data comes from outside: every field is checked, and none of it is run or looked up as code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_inspector import asking
from torch_inspector.account import MemoryReport
from torch_inspector.facts import Snapshot
from torch_inspector.notebook import freeing
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.wishes import read_wishes
from torch_inspector.notebook.muting import SCOPES, Wish

if TYPE_CHECKING:
    from torch_inspector.notebook.feed.feed import Feed
    from torch_inspector.notebook.muting import Muting

_BUDGET_S = 3.0
_LONGEST_PATH = 2000
_LONGEST_SLUG = 200
_LARGEST = 2**53
_ITEMS = ("outputs", "cycles", "cache", "exception")


class Requests:
    """Answers requests through the feed.

    Args:
        feed: Takes the answers.
        shell: The IPython shell.
        is_busy: True while a cell runs. Its objects change under a look, so there is none then.
        latest: What held after the latest cell.
        muting: Has pitfalls stay silent.
    """

    def __init__(
        self, feed: Feed, shell: Any, is_busy: Callable[[], bool], latest: Callable[[], Snapshot], muting: Muting
    ) -> None:
        self._feed = feed
        self._shell = shell
        self._is_busy = is_busy
        self._latest = latest
        self._muting = muting
        self._known: dict[str, Callable[[Any], None]] = {
            "hello": lambda _: feed.greet(),
            "account": self._account,
            "holders": self._holders,
            "free": self._free,
            "settings": self._settings,
            "mute": self._mute,
        }

    def take(self, data: Any) -> None:
        """One request; what is not understood gets no answer."""
        if type(data) is not dict or data.get("v") != messages.VERSION:
            return
        word = data.get("ask")
        act = self._known.get(word) if type(word) is str else None
        if act is not None:
            act(data)

    def _account(self, _data: Any) -> None:
        if not self._refused("account"):
            self._tell(asking.memory(_BUDGET_S, self._shell))

    def _holders(self, data: Any) -> None:
        path = data.get("path")
        if type(path) is not str or len(path) > _LONGEST_PATH or self._refused("holders"):
            return
        report = asking.holders_of_row(path, _BUDGET_S, self._shell)
        if report is None and path in self._shell.user_ns:
            report = asking.holders_of(self._shell.user_ns[path], path, _BUDGET_S, self._shell)
        self._feed.answer("holders", **messages.holders(path, report))

    def _free(self, data: Any) -> None:
        """Lets go of what `%torchcheck free` would, item by item; the page has asked the user before."""
        item, path = data.get("item"), data.get("path", "")
        if item not in _ITEMS or type(path) is not str or len(path) > _LONGEST_PATH or self._refused("free"):
            return
        before = asking.memory(_BUDGET_S, self._shell)
        returned = freeing.let_go_of(self._shell, before, item, path)
        after = asking.memory(_BUDGET_S, self._shell)
        freed = returned or max(_nbytes(before) - _nbytes(after), 0)
        self._feed.answer("freed", **messages.freed(item, path, freed))
        self._tell(after)

    def _settings(self, data: Any) -> None:
        wishes = read_wishes(data)
        if wishes is not None:
            self._feed.wish(wishes)

    def _mute(self, data: Any) -> None:
        """Touches settings only, so a subshell may do it while a cell runs."""
        answer = answer_mute(data, self._muting)
        if answer is not None:
            self._feed.answer("muted", **answer)

    def _tell(self, report: MemoryReport) -> None:
        self._feed.answer("account", **messages.account(report, self._latest()))

    def _refused(self, word: str) -> bool:
        """True, and said so, where a look at all objects would disturb or be disturbed."""
        elsewhere = threading.current_thread() is not threading.main_thread()
        if elsewhere or self._is_busy():
            self._feed.answer("refused", ask=word)
            return True
        return False


def answer_mute(data: dict[str, Any], muting: Muting) -> messages.Message | None:
    """Does what a request to be silent says; None, and nothing done, if it does not say it in the right form."""
    wish = _read_wish(data)
    if wish is None:
        return None
    path = error = ""
    try:
        path = muting.heed(wish)
    except ValueError as refused:
        error = str(refused)
    return messages.muted(wish, path, error)


def answer_panel(data: Any, muting: Muting) -> messages.Message | None:
    """The same for a widget, which can ask for nothing else."""
    if type(data) is not dict or data.get("v") != messages.VERSION or data.get("ask") != "mute":
        return None
    answer = answer_mute(data, muting)
    return None if answer is None else {"op": "muted", **answer}


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
