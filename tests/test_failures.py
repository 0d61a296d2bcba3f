"""What fails inside stays inside."""

import gc
import io
import logging
import sys
import weakref
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.cells import a_notebook
from torch_inspector.failures import Failures
from torch_inspector.pitfall import Pitfall

FINE = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\nloss = net(torch.ones(1, 2)).sum()\nloss.backward()"


class Thing:
    """Stands for an object of the user's."""


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), MemoryError()])
def test_a_failure_is_swallowed_and_counted(error):
    failures = Failures()
    with failures.guard("part"):
        raise error
    assert failures.counts == {"part": 1}
    assert type(error).__name__ in failures.recent[0]


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_ways_to_leave_are_not(error):
    with pytest.raises(error), Failures().guard("part"):
        raise error


def test_an_interrupt_is_swallowed_where_only_our_own_work_can_be_meant():
    failures = Failures()
    with failures.guard("part", interrupts=True):
        raise KeyboardInterrupt
    assert failures.counts == {"part": 1}


def test_a_part_that_fails_often_is_given_up():
    failures = Failures()
    for count in range(5):
        assert not failures.gave_up("part"), count
        with failures.guard("part"):
            raise ValueError
    assert failures.gave_up("part")
    assert not failures.gave_up("other")


def test_only_the_latest_are_kept():
    failures = Failures()
    for number in range(50):
        with failures.guard(f"part {number}"):
            raise ValueError
    assert len(failures.recent) == 20
    assert failures.recent[-1].startswith("part 49")


def test_nothing_of_the_failure_stays_alive():
    failures, thing = Failures(), Thing()
    gone = weakref.ref(thing)

    def fail(thing):
        raise ValueError(thing)

    gc.disable()
    try:
        with failures.guard("part"):
            fail(thing)
        del thing
        assert gone() is None
    finally:
        gc.enable()


def test_the_text_of_the_exception_is_not_asked_for():
    class Loud(Exception):  # noqa: N818
        def __str__(self):
            raise AssertionError

        __repr__ = __str__

    failures = Failures()
    with failures.guard("part"):
        raise Loud
    assert "Loud" in failures.recent[0]


def a_broken_check(_run):
    raise ValueError("broken check")


def test_a_broken_check_prints_nothing_and_touches_nothing(caplog):
    out, err = io.StringIO(), io.StringIO()
    with a_notebook() as notebook, caplog.at_level(logging.INFO):
        session = notebook.extension.session
        session.pitfalls = lambda: [Pitfall("broken", "none", "error", a_broken_check, Path("none.md"))]
        before = getattr(sys, "last_value", None)
        with redirect_stdout(out), redirect_stderr(err):
            result = notebook.shell.run_cell(FINE, store_history=True)
        assert session.failures.counts == {"broken": 1}
        assert getattr(sys, "last_value", None) is before
        session.failures.counts.clear()
    assert result.success
    assert (out.getvalue(), err.getvalue(), notebook.published) == ("", "", [])
    assert caplog.records == []


def test_a_broken_check_is_left_out_after_a_while():
    calls = []

    def broken(_run):
        calls.append(1)
        raise ValueError

    with a_notebook() as notebook:
        session = notebook.extension.session
        session.pitfalls = lambda: [Pitfall("broken", "none", "error", broken, Path("none.md"))]
        for _ in range(9):
            notebook.run("1")
        session.failures.counts.clear()
    assert len(calls) == 5


@pytest.mark.parametrize("part", ["trace", "snapshot", "memory", "error", "open", "close"])
def test_a_broken_observer_does_not_touch_the_cell(part, monkeypatch):
    from torch_inspector.observe.observer import TorchObserver

    def broken(*_args, **_kwargs):
        raise ValueError

    with a_notebook() as notebook:
        notebook.run("import torch")
        with monkeypatch.context() as patch:
            patch.setattr(TorchObserver, part, broken)
            notebook.run("x = torch.ones(3).sum()\nif True: raise KeyError('own')")
        assert type(notebook.errors[-1]) is KeyError
        assert notebook.extension.session.failures.counts
        notebook.extension.session.failures.counts.clear()
        assert notebook.run("y = x + 1") is not None
    assert notebook.published == []


def test_an_interrupt_during_a_look_reaches_the_user(monkeypatch):
    from torch_inspector.observe import witness

    def interrupted(*_args):
        raise KeyboardInterrupt

    with a_notebook() as notebook:
        notebook.run(FINE)
        monkeypatch.setattr(witness, "look", interrupted)
        notebook.run("for i in range(3):\n    net(torch.ones(1, 2)).sum().backward()")
        notebook.extension.session.failures.counts.clear()
    assert type(notebook.errors[-1]) is KeyboardInterrupt


def test_of_a_recursion_the_innermost_frames_are_kept():
    def endless():
        endless()

    failures = Failures()
    with failures.guard("part"):
        endless()
    assert failures.recent[0].count("in endless") <= 20
    assert failures.counts == {"part": 1}
