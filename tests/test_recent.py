"""The latest runs of the process."""

from collections import deque

import pytest

import torch_inspector
from tests.fakes import a_cell, a_run
from torch_inspector import recent


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Runs of other tests are out of sight."""
    monkeypatch.setattr(recent, "_runs", deque(maxlen=recent._runs.maxlen))


def test_nothing_before_the_first():
    assert torch_inspector.last_run() is None
    assert torch_inspector.runs() == ()


def test_latest_last():
    first, second = a_run(), a_run()
    recent.note(first)
    recent.note(second)
    assert torch_inspector.last_run() is second
    assert torch_inspector.runs() == (first, second)


def test_bounded():
    for number in range(60):
        recent.note(a_run(cell=a_cell(number=number)))
    assert [run.cell.number for run in torch_inspector.runs()] == list(range(10, 60))


def test_runs_is_a_copy():
    before = torch_inspector.runs()
    recent.note(a_run())
    assert before == ()
