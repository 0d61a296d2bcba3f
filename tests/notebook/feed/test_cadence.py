"""Often in a young cell, seldom in an old one, never in an idle kernel."""

import pytest

from torch_inspector.notebook.feed.cadence import Cadence


def sent(cadence, begin, end, *, changed=False):
    """Times of the looks that are sent, and how many looks there are."""
    now, times, looks = begin, [], 0
    while now < end:
        looks += 1
        if cadence.is_due(now, changed=changed):
            times.append(now)
        now += cadence.pause(now)
    return times, looks


@pytest.mark.parametrize(("minute", "least", "most"), [(0, 118, 121), (5, 29, 31), (30, 11, 13), (480, 11, 13)])
def test_messages_per_minute_of_a_cell(minute, least, most):
    cadence = Cadence()
    cadence.begin(0.0)
    times, _ = sent(cadence, 60.0 * minute, 60.0 * (minute + 1))
    assert least <= len(times) <= most


def test_three_looks_after_a_cell_and_then_silence():
    cadence = Cadence()
    cadence.begin(0.0)
    sent(cadence, 0.0, 3.0)
    cadence.end()
    times, looks = sent(cadence, 3.0, 3600.0)
    assert len(times) == 3
    assert looks < 3700


def test_idle_kernel_tells_of_a_change():
    cadence = Cadence()
    sent(cadence, 0.0, 10.0)
    assert sent(cadence, 10.0, 10.5, changed=True)[0] == [10.0]
