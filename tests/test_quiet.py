"""Correct programs give no finding at all: the most important test."""

from pathlib import Path

import pytest

from tests.cells import a_notebook, cells_of

PROGRAMS = sorted((Path(__file__).parent / "quiet").glob("*.py"))
ENOUGH = 25


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= ENOUGH


@pytest.mark.parametrize("min_bytes", [None, 0], ids=["default", "any-size"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_said(program, min_bytes):
    with a_notebook(min_bytes=min_bytes) as notebook:
        for source in cells_of(program):
            notebook.run(source)
        found = notebook.findings()
    assert [error for error in notebook.errors if error is not None] == []
    # Without a threshold, memory of a few bytes may be worth a hint, as it may be to a person who asks for it.
    assert [one for one in found if min_bytes is None or one[3] != "hint"] == []
