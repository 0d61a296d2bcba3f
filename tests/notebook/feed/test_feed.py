"""The thread: what it sends, when it is silent, and that nothing it meets harms anybody."""

import threading
import time
from contextlib import contextmanager
from typing import Any

from tests.fakes import a_cell, a_run
from tests.notebook.feed.samples import FINDING
from torch_inspector.failures import Failures
from torch_inspector.notebook.feed import cadence
from torch_inspector.notebook.feed import feed as feed_module
from torch_inspector.notebook.feed.feed import Feed
from torch_inspector.notebook.feed.sample import now_ms
from torch_inspector.notebook.feed.wishes import Wishes

QUICK_S = 1.5


class Sight:
    """A session as the feed sees it."""

    def __init__(self):
        self.now = None
        self.made = 0

    def cell(self):
        return self.now

    def torch(self):
        return None

    def early(self):
        return (FINDING,)

    def steps(self):
        self.made += 1
        return self.made


@contextmanager
def a_feed(send=None):
    """A running feed, what it sees and what it has sent."""
    sent: list[dict[str, Any]] = []
    sight, failures = Sight(), Failures()
    feed = Feed(send or sent.append, sight, failures)
    feed.start()
    try:
        yield feed, sight, sent, failures
    finally:
        feed.stop()


def wait_for(sent, op, count=1, within=20.0):
    """The messages of one kind, once there are so many."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = [message for message in list(sent) if message["op"] == op]
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"no {op}: {[message['op'] for message in sent]}")


def test_a_cell_from_begin_to_end():
    with a_feed() as (feed, sight, sent, failures):
        wait_for(sent, "sample")
        sight.now = a_cell()
        feed.begin()
        running = [message for message in wait_for(sent, "sample", 5) if message["cell"] is not None]
        assert running[-1]["cell"]["number"] == 1
        assert running[-1]["cell"]["steps"] > running[0]["cell"]["steps"]
        sight.now = None
        feed.end(a_run())
        (message,) = wait_for(sent, "cell")
        assert message["cell"]["number"] == 1
        assert failures.counts == {}


def test_findings_of_a_running_cell():
    with a_feed() as (feed, sight, sent, _):
        sight.now = a_cell()
        feed.begin()
        end = time.monotonic() + 20
        while time.monotonic() < end and not any(message.get("findings") for message in sent):
            time.sleep(0.05)
        (found,) = next(message["findings"] for message in sent if message.get("findings"))
        assert (found["slug"], found["line"]) == (FINDING.slug, 4)


def test_history_is_answered_and_idle_is_silent():
    with a_feed() as (feed, _, sent, _):
        feed.end(a_run())
        wait_for(sent, "sample", 3)
        feed.greet()
        (history,) = wait_for(sent, "history")
        assert history["complete"]
        assert len(history["cells"]) == 1
        time.sleep(QUICK_S)
        before = len(sent)
        time.sleep(QUICK_S)
        assert len(sent) == before


def test_a_thousand_quick_cells_are_all_told():
    with a_feed() as (feed, sight, sent, failures):
        for number in range(1000):
            sight.now = a_cell(number=number)
            feed.begin()
            sight.now = None
            feed.end(a_run(cell=a_cell(number=number)))
        messages = wait_for(sent, "cell", 1000)
        assert [message["cell"]["number"] for message in messages] == list(range(1000))
        assert failures.counts == {}


def test_a_channel_that_fails_ends_the_feed_and_nothing_else():
    def broken(_message):
        raise OSError("the socket is closed")

    with a_feed(broken) as (feed, _, _, failures):
        for _ in range(10):
            feed.greet()
            feed._thread.join(timeout=1)
        assert not feed._thread.is_alive()
        assert failures.counts["feed"] >= 5
        feed.begin()
        feed.end(a_run())
        feed.greet()


def test_stopped_it_says_goodbye_and_leaves_no_thread():
    with a_feed() as (feed, _, sent, _):
        wait_for(sent, "sample")
        feed.stop()
        assert sent[-1]["op"] == "bye"
        assert feed._thread not in threading.enumerate()


def test_a_stretch_without_looks_is_marked(monkeypatch):
    monkeypatch.setattr(feed_module, "_LATE_S", 0.2)
    with a_feed() as (feed, sight, sent, _):
        sight.now = a_cell()
        feed.begin()
        wait_for(sent, "sample", 3)
        took = sight.torch
        sight.torch = lambda: time.sleep(1)  # as if C code held the interpreter
        count = len(wait_for(sent, "sample"))
        wait_for(sent, "sample", count + 1)
        sight.torch = took
        wait_for(sent, "sample", count + 2)
        assert any(message["gap"] for message in wait_for(sent, "sample"))


def test_without_sampling_a_cell_is_told_and_no_memory():
    with a_feed() as (feed, sight, sent, _):
        wait_for(sent, "sample", 3)
        feed.wish(Wishes(sampling=False))
        sight.now = a_cell()
        feed.begin()
        looks = wait_for(sent, "sample", 5)[3:]
        assert all(look["devices"] == [] and look["cell"] is not None for look in looks)
        sight.now = None
        feed.end(a_run())
        wait_for(sent, "cell")
        time.sleep(QUICK_S)
        assert sent[-1]["op"] == "cell"


def test_without_live_findings_the_running_cell_is_not_judged():
    with a_feed() as (feed, sight, sent, _):
        feed.wish(Wishes(findings=False, interval_s=0.25))
        sight.now = a_cell()
        feed.begin()
        looks = [look for look in wait_for(sent, "sample", 8) if look["cell"] is not None]
        assert looks[-1]["cell"]["elapsed_s"] > 1
        assert not any(look["findings"] for look in looks)


def test_the_interval_is_the_users(monkeypatch):
    monkeypatch.setattr(cadence, "QUICK_S", 5.0)
    with a_feed() as (feed, sight, sent, _):
        feed.wish(Wishes(interval_s=0.25))
        sight.now = a_cell()
        feed.begin()
        begun = time.monotonic()
        count = len(wait_for(sent, "sample"))
        wait_for(sent, "sample", count + 4)
        assert time.monotonic() - begun < 4 * 5.0


def test_steps_of_the_running_cell_can_be_had():
    with a_feed() as (feed, sight, _, _):
        sight.now = a_cell()
        feed.begin()
        until = time.monotonic() + 20
        # The first look may be one before the cell.
        while not any(moment.steps for moment in feed.moments(0)):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_memory_of_the_running_cell_can_be_had():
    began = now_ms()
    with a_feed() as (feed, sight, sent, _):
        sight.now = a_cell()
        feed.begin()
        wait_for(sent, "sample")
        moments = feed.moments(began)
        assert moments
        assert {moment.device for moment in moments} == {"host"}
        assert all(0 <= moment.at_s < 60 and moment.nbytes > 0 for moment in moments)
        assert feed.moments(now_ms() + 60_000) == ()
