"""How long a look may take."""

from time import thread_time

import pytest

from torch_inspector.observe import budget
from torch_inspector.observe.budget import Budget


def at(monkeypatch, wall=(0.0,), cpu=(0.0,)):
    """Lets the clocks show these times, one after the other, the last for ever."""
    for name, times in (("perf_counter", list(wall)), ("thread_time", list(cpu))):
        monkeypatch.setattr(budget, name, lambda left=times: left.pop(0) if len(left) > 1 else left[0])


def test_a_fresh_budget_is_open_until_the_least_is_spent(monkeypatch):
    at(monkeypatch, wall=(0.0, 0.5), cpu=(0.5,))
    small = Budget(0.02)
    assert small.open()
    small.charge(0.25)
    assert small.spent_s == 0.25
    assert not small.open()


def test_what_other_programs_take_is_not_charged(monkeypatch):
    at(monkeypatch, wall=(0.0, 10.0), cpu=(0.001,))
    one = Budget(0.02, share_ratio=0.0)
    one.charge(0.0)
    assert one.open()


def test_a_long_cell_earns_more(monkeypatch):
    at(monkeypatch, wall=(0.0, 100.0), cpu=(1.0,))
    one = Budget(0.02, share_ratio=0.05)
    one.charge(0.0)
    assert one.spent_s == 1.0
    assert one.open()


def test_the_deadline_is_processor_time_and_leaves_what_is_left(monkeypatch):
    at(monkeypatch, wall=(0.0, 2.0), cpu=(0.015, 7.0))
    one = Budget(0.02, share_ratio=0.0)
    one.charge(0.0)
    assert one.deadline() == pytest.approx(7.0 + (0.02 - 0.015))


def test_no_budget_is_closed_from_the_start():
    none = Budget(0.0, share_ratio=0.0)
    assert not none.open()
    assert none.deadline() <= thread_time()
