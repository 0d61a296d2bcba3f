"""A session of any length fits, and its peaks stay to be seen."""

from tests.fakes import a_memory
from torch_inspector.notebook.feed.sample import Sample
from torch_inspector.notebook.feed.timeline import Timeline


def a_timeline(count, most=100, peak=37):
    """So many looks, one of them high."""
    timeline = Timeline(most)
    for at in range(count):
        timeline.add(Sample(at, (a_memory(allocated_nbytes=1000 if at == peak else 1),), gap=at == 3))
    return timeline


def test_few_are_all_kept():
    assert [one.at_ms for one in a_timeline(60).samples] == list(range(60))


def test_many_are_thinned_and_the_peak_stays():
    samples = a_timeline(5000).samples
    assert len(samples) <= 100
    assert [one.at_ms for one in samples] == sorted(one.at_ms for one in samples)
    assert max(one.memory[0].allocated_nbytes for one in samples) == 1000
    assert samples[-1].at_ms == 4999


def test_short_form():
    latest = a_timeline(90).latest(20)
    assert len(latest) <= 20
    assert max(one.memory[0].allocated_nbytes for one in latest) == 1000
    assert any(one.gap for one in latest)


def test_a_limit_that_is_lowered_holds_at_once():
    timeline = a_timeline(1000, most=4000)
    assert len(timeline.samples) == 1000
    timeline.limit(100)
    assert len(timeline.samples) <= 100
    assert timeline.samples[-1].at_ms == 999
