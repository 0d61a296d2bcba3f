"""Requests come from outside: what is not understood gets no answer, and nothing in it is run."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from torch_inspector import asking
from torch_inspector.account import HoldersReport, MemoryReport
from torch_inspector.facts import Snapshot
from torch_inspector.notebook import freeing
from torch_inspector.notebook.feed.answers import Answers
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


class Muting:
    """Writes down what is to be silent; refuses one name."""

    def __init__(self, feed):
        self.feed = feed

    def heed(self, wish):
        if wish.slug == "unknown":
            raise ValueError("no pitfall is called 'unknown'")
        self.feed.answers.append(("wish", tuple(wish)))
        return "file" if wish.scope == "always" else ""


def ask(feed, data, *, busy=False):
    shell = SimpleNamespace(user_ns={"name": [1]})
    muting: Any = Muting(feed)
    Requests(feed, Answers(shell, lambda: busy, Snapshot, muting)).take(data)


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


MUTE = {"v": 1, "ask": "mute", "slug": "missing-zero-grad", "scope": "line", "cell": 3, "line": 4}


def test_mute_is_heard_also_while_a_cell_runs_and_told_to_all(feed):
    ask(feed, MUTE, busy=True)
    ask(feed, {**MUTE, "scope": "always", "on": False})
    ask(feed, {**MUTE, "slug": "unknown"})
    said = {"slug": "missing-zero-grad", "scope": "line", "cell": 3, "line": 4, "on": True, "path": "", "error": ""}
    assert feed.answers == [
        ("wish", ("missing-zero-grad", "line", 3, 4, True)),
        ("muted", said),
        ("wish", ("missing-zero-grad", "always", 3, 4, False)),
        ("muted", {**said, "scope": "always", "on": False, "path": "file"}),
        ("muted", {**said, "slug": "unknown", "error": "no pitfall is called 'unknown'"}),
    ]


def test_what_a_path_leads_to_is_looked_for_first_and_rows_of_the_account_next(feed, looks, monkeypatch):
    found = []

    def holders_of(thing, path, *_):
        found.append((thing, path))
        return HoldersReport(path)

    monkeypatch.setattr(asking, "holders_of", holders_of)
    for path in ("name", "name[0]", "missing", "__import__('os')"):
        ask(feed, {"v": 1, "ask": "holders", "path": path})
    assert found == [([1], "name")]
    assert looks == ["name[0]", "missing", "__import__('os')"]


@pytest.mark.parametrize(
    ("path", "gone"), [("missing", True), ("name[7]", True), ("name[0]", False), ("__import__('os')", False)]
)
def test_it_is_gone_only_where_its_path_surely_leads_nowhere(feed, monkeypatch, path, gone):
    monkeypatch.setattr(asking, "holders_of_row", lambda *_: None)
    ask(feed, {"v": 1, "ask": "holders", "path": path})
    assert feed.answers == [("holders", {"path": path, "rows": [], "gone": gone, "unknown": not gone})]


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
    ("data", "waits"),
    [(MUTE, False), ({"v": 1, "ask": "account"}, True), ({"ask": ["account"]}, False), (None, False)],
)
def test_looks_wait_for_the_main_thread(feed, data, waits):
    shell: Any = SimpleNamespace(user_ns={})
    muting: Any = Muting(feed)
    answers = Answers(shell, lambda: False, Snapshot, muting)
    assert not answers.must_wait(data)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(answers.must_wait, data).result() == waits


@pytest.mark.parametrize(
    "data",
    [
        None, 7, "hello", [], {}, {"ask": "hello"}, {"v": 2, "ask": "hello"}, {"v": 1, "ask": "__class__"},
        {"v": 1, "ask": ["hello"]}, {"v": 1, "ask": "run", "code": "1/0"}, {"v": 1, "ask": "holders"},
        {"v": 1, "ask": "holders", "path": {}}, {"v": 1, "ask": "holders", "path": "x" * 10_000},
        {"v": 1, "ask": "free"}, {"v": 1, "ask": "free", "item": "x"}, {"v": 1, "ask": "free", "item": {}},
        {"v": 1, "ask": "free", "item": "outputs", "path": 1}, {"v": 1, "ask": "settings"},
        {**SETTINGS, "sampling": 1}, {**SETTINGS, "interval_s": "1"}, {**SETTINGS, "interval_s": float("nan")},
        {**SETTINGS, "findings": None}, {**SETTINGS, "history": 1.5}, {"v": 1, "ask": "mute"},
        {**MUTE, "slug": 1}, {**MUTE, "slug": "x" * 1000}, {**MUTE, "scope": "everywhere"}, {**MUTE, "scope": ["line"]},
        {**MUTE, "cell": "3"}, {**MUTE, "cell": True}, {**MUTE, "line": -1}, {**MUTE, "line": 10**30},
        {**MUTE, "on": 1},
    ],
)  # fmt: skip
def test_strange_requests_get_no_answer(feed, looks, data):
    ask(feed, data)
    assert (feed.greeted, feed.answers, looks) == (0, [], [])
