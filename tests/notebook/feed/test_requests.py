"""Requests come from outside: what is not understood gets no answer, and nothing in it is run."""

import threading

import pytest

from torch_inspector import asking
from torch_inspector.account import HoldersReport, MemoryReport
from torch_inspector.facts import Snapshot
from torch_inspector.notebook import freeing
from torch_inspector.notebook.feed.requests import Requests


class Feed:
    """Writes down what would be sent."""

    def __init__(self):
        self.greeted = 0
        self.answers = []

    def greet(self):
        self.greeted += 1

    def wish(self, wishes):
        self.answers.append(("wish", wishes))

    def answer(self, op, **fields):
        self.answers.append((op, fields))


@pytest.fixture
def feed():
    return Feed()


@pytest.fixture(autouse=True)
def looks(monkeypatch):
    """What was looked for instead of a full look."""
    asked: list[str] = []

    def memory(*_):
        asked.append("memory")
        return MemoryReport()

    def holders_of_row(path, *_):
        asked.append(path)
        return HoldersReport(path)

    def let_go_of(_shell, _report, item, path):
        asked.append(f"free {item} {path}".strip())
        return 0

    monkeypatch.setattr(freeing, "let_go_of", let_go_of)
    monkeypatch.setattr(asking, "memory", memory)
    monkeypatch.setattr(asking, "holders_of_row", holders_of_row)
    return asked


def ask(feed, data, *, busy=False):
    Requests(feed, None, lambda: busy, Snapshot).take(data)


def test_hello_is_answered_with_history_also_while_a_cell_runs(feed):
    ask(feed, {"v": 1, "ask": "hello"}, busy=True)
    assert feed.greeted == 1


def test_account_and_holders(feed, looks):
    ask(feed, {"v": 1, "ask": "account"})
    ask(feed, {"v": 1, "ask": "holders", "path": "x[0]"})
    assert looks == ["memory", "x[0]"]
    assert [op for op, _ in feed.answers] == ["account", "holders"]


def test_free_is_one_item_between_two_looks_and_the_account_follows(feed, looks):
    ask(feed, {"v": 1, "ask": "free", "item": "outputs", "path": "Out[3]"})
    ask(feed, {"v": 1, "ask": "free", "item": "cycles"})
    assert looks == ["memory", "free outputs Out[3]", "memory", "memory", "free cycles", "memory"]
    assert [op for op, _ in feed.answers] == ["freed", "account"] * 2


SETTINGS = {"v": 1, "ask": "settings", "sampling": False, "interval_s": 2, "findings": False, "history": 500}


def test_settings_are_heard_also_while_a_cell_runs_and_kept_within_bounds(feed):
    ask(feed, SETTINGS, busy=True)
    ask(feed, {**SETTINGS, "interval_s": 0, "history": 10**9})
    ask(feed, {**SETTINGS, "interval_s": 10**400, "history": -1})
    assert [tuple(wishes) for _, wishes in feed.answers] == [
        (False, 2.0, False, 500),
        (False, 0.25, False, 4000),
        (False, 10.0, False, 100),
    ]


@pytest.mark.parametrize("word", ["account", "holders", "free"])
def test_no_look_while_a_cell_runs_or_in_another_thread(feed, looks, word):
    data = {"v": 1, "ask": word, "path": "x", "item": "outputs"}
    ask(feed, data, busy=True)
    thread = threading.Thread(target=ask, args=(feed, data))
    thread.start()
    thread.join()
    assert feed.answers == [("refused", {"ask": word})] * 2
    assert looks == []


@pytest.mark.parametrize(
    "data",
    [
        None, 7, "hello", [], {}, {"ask": "hello"}, {"v": 2, "ask": "hello"}, {"v": 1, "ask": "__class__"},
        {"v": 1, "ask": ["hello"]}, {"v": 1, "ask": "run", "code": "1/0"}, {"v": 1, "ask": "holders"},
        {"v": 1, "ask": "holders", "path": {}}, {"v": 1, "ask": "holders", "path": "x" * 10_000},
        {"v": 1, "ask": "free"}, {"v": 1, "ask": "free", "item": "x"}, {"v": 1, "ask": "free", "item": {}},
        {"v": 1, "ask": "free", "item": "outputs", "path": 1}, {"v": 1, "ask": "settings"},
        {**SETTINGS, "sampling": 1}, {**SETTINGS, "interval_s": "1"}, {**SETTINGS, "interval_s": float("nan")},
        {**SETTINGS, "findings": None}, {**SETTINGS, "history": 1.5},
    ],
)  # fmt: skip
def test_strange_requests_get_no_answer(feed, looks, data):
    ask(feed, data)
    assert (feed.greeted, feed.answers, looks) == (0, [], [])
