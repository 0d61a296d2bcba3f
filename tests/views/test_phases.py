"""Phases and steps along the time of a cell."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_count, a_mode, a_run
from torch_inspector.facts import MomentFact
from torch_inspector.views.phases import pace_table, phase_tables

LOOP = """\
import torch, time
net = torch.nn.Linear(2, 1)
for epoch in range(3):
    net.train()
    time.sleep(0.05)
    net.eval()
"""


def a_change(at_s, *, training, **changes):
    """A call of `train()` or `eval()` at a time."""
    return a_mode(training=training, at_s=at_s, **changes)


def test_time_in_each_mode_and_a_line_of_the_changes():
    run = a_run(*(a_change(at, training=at % 2 == 0) for at in range(4)), duration_s=4.0)
    (table,) = phase_tables(run)
    assert table.caption == "model over 4.00 s: train above, eval below"
    assert table.rows == (("train", "2", "2.00 s"), ("eval", "2", "2.00 s"))
    assert table.curve == tuple((250 * at, 1000 * (side % 2 == 0)) for side in range(4) for at in (side, side + 1))


def test_calls_that_change_nothing_go_on_with_the_phase():
    calls = [a_change(1.0, training=True), a_change(2.0, training=True), a_change(3.0, training=False)]
    (table,) = phase_tables(a_run(*calls, duration_s=4.0))
    assert table.rows == (("train", "1", "2.00 s"), ("eval", "1", "1.00 s"))


def test_one_mode_is_no_change():
    assert list(phase_tables(a_run(a_change(1.0, training=True), duration_s=4.0))) == []
    assert list(phase_tables(a_run(duration_s=4.0))) == []


def test_many_changes_are_counted_without_a_line():
    run = a_run(*(a_change(at / 10, training=at % 2 == 0) for at in range(100)), duration_s=10.0)
    (table,) = phase_tables(run)
    assert (table.rows[0][1], table.curve) == ("50", ())


def test_steps_along_the_time():
    looks = tuple(MomentFact(float(at), device, 1, 10 * at) for at in range(1, 4) for device in ("host", "cuda:0"))
    table = pace_table(a_run(a_count("step", 40), moments=looks, duration_s=4.0))
    assert table is not None
    assert table.caption == "40 optimizer steps over 4.00 s"
    assert table.rows == (("half of them", "after 2.00 s"), ("per second", "10"))
    assert table.curve == ((0, 0), (250, 250), (500, 500), (750, 750), (1000, 1000))


@pytest.mark.parametrize(
    ("steps", "looks", "duration_s"),
    [(0, 3, 4.0), (40, 0, 4.0), (40, 3, 0.0)],
    ids=["no steps", "no looks", "no time"],
)
def test_steps_that_nobody_watched_have_no_line(steps, looks, duration_s):
    counts = [a_count("step", steps)] if steps else []
    moments = tuple(MomentFact(float(at), "host", 1, at) for at in range(looks))
    assert pace_table(a_run(*counts, moments=moments, duration_s=duration_s)) is None


def test_times_of_the_calls_are_those_of_the_cell():
    with a_notebook() as notebook:
        run = notebook.run(LOOP)
    assert run is not None
    times = [call.at_s for call in run.trace.modes]
    assert times == sorted(times)
    assert times[-1] - times[0] >= 0.14
    assert times[-1] <= run.duration_s + run.inspection_s
