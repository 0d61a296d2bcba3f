"""How long a look may take."""

from time import perf_counter

from torch_inspector.observe import budget
from torch_inspector.observe.budget import Budget


def at(monkeypatch, *times):
    """Lets the clock show these times, one after the other, the last for ever."""
    left = list(times)
    monkeypatch.setattr(budget, "perf_counter", lambda: left.pop(0) if len(left) > 1 else left[0])


def test_a_fresh_budget_is_open_until_the_least_is_spent(monkeypatch):
    at(monkeypatch, 0.0, 0.5)
    small = Budget(0.02)
    assert small.open()
    small.charge(0.25)
    assert small.spent_s == 0.25
    assert not small.open()


def test_a_long_cell_earns_more(monkeypatch):
    at(monkeypatch, 0.0, 1.0, 100.0)
    one = Budget(0.02, share_ratio=0.05)
    one.charge(0.0)
    assert one.spent_s == 1.0
    assert one.open()


def test_the_deadline_leaves_what_is_left(monkeypatch):
    at(monkeypatch, 0.0, 0.015, 2.0)
    one = Budget(0.02, share_ratio=0.0)
    one.charge(0.0)
    assert one.deadline() == 2.0 + 0.02 - 0.015


def test_no_budget_is_closed_from_the_start():
    none = Budget(0.0, share_ratio=0.0)
    assert not none.open()
    assert none.deadline() <= perf_counter()
