"""Correct programs give no finding at all: the most important test."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cells import a_notebook, cells_of
from torch_inspector.pitfalls import all_pitfalls

PROGRAMS = sorted((Path(__file__).parent / "quiet").glob("*.py"))
ENOUGH = 100
# Runs that a session lets a check look back on.
EARLIER = 20


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= ENOUGH


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_said(program):
    with a_notebook() as notebook:
        for source in cells_of(program):
            notebook.run(source)
        assert notebook.findings() == []
        assert [error for error in notebook.errors if error is not None] == []
        runs = [run for run in notebook.runs if run is not None]
    assert accused(runs) == []


def accused(runs):
    """What is said of the same runs without a threshold.

    Memory of a few bytes may then be worth a hint, as it may be to a person who asks for it, but no more than that.
    """
    found = []
    for count, run in enumerate(runs):
        small = replace(run, min_nbytes=0, earlier=tuple(runs[:count])[-EARLIER:])
        for pitfall in all_pitfalls():
            severities = [finding.severity or pitfall.severity for finding in pitfall.check(small)]
            found += [(run.cell.number, pitfall.slug) for severity in severities if severity != "hint"]
    return found
