"""The user's line behind a call: through functions, earlier cells, libraries and `%%time`."""

import sys

import pytest

from tests.fakes import a_cell
from torch_inspector.facts import Place
from torch_inspector.observe.place import CodeFile, Places


def frames_of(code, filename, **names):
    """Runs code that calls `look()`, and gives the frame of each call."""
    frames = []
    exec(compile(code, filename, "exec"), {"look": lambda: frames.append(sys._getframe(1)), **names})  # noqa: S102
    return frames


def test_a_line_at_the_top_of_a_cell_has_no_function():
    places = Places()
    places.add_cell("<cell-4>", a_cell("\nlook()", number=4, code="look()", line_offset=1))
    (frame,) = frames_of("look()", "<cell-4>")
    assert places.place(frame, 1) == Place(4, 2, "")


def test_a_function_of_an_earlier_cell_is_the_innermost_line():
    places, found = Places(), []
    code = "def inner():\n    look()\n"
    names = {"look": lambda: found.append(places.find(sys._getframe(1)))}
    places.add_cell("<one>", a_cell(code, number=1))
    places.add_cell("<two>", a_cell("inner()", number=2))
    exec(compile(code, "<one>", "exec"), names)  # noqa: S102
    exec(compile("inner()", "<two>", "exec"), names)  # noqa: S102
    assert found == [Place(1, 2, "inner")]


def test_code_of_a_library_in_between_is_passed():
    places, found = Places(), []
    places.add_cell("<cell>", a_cell("train()", number=7))
    library = {"look": lambda: found.append(places.find(sys._getframe(1)))}
    exec(compile("def train():\n    helper()\ndef helper():\n    look()", "/lib/trainer.py", "exec"), library)  # noqa: S102
    exec(compile("train()", "<cell>", "exec"), library)  # noqa: S102
    assert found == [Place(7, 1, "")]


def test_no_cell_anywhere_gives_an_empty_place():
    assert Places().find(sys._getframe()) == Place()
    assert Places().find(None) == Place()
    assert Places().place(sys._getframe(), None) == Place()


def test_the_same_name_given_again_is_the_latest_cell():
    places = Places()
    places.add_cell("<same>", a_cell("look()", number=1))
    places.add_cell("<same>", a_cell("look()", number=9))
    (frame,) = frames_of("look()", "<same>")
    assert places.place(frame, 1).cell == 9


def test_a_timed_body_has_its_own_offset():
    places = Places()
    places.add_cell("<cell>", a_cell("%%time\nx = 1\nlook()", number=3, code="…", body_offset=1))
    (frame,) = frames_of("x = 1\nlook()", "<timed exec>")
    assert places.place(frame, 2) == Place(3, 3, "")


def test_a_function_of_an_older_timed_cell_is_not_taken_for_the_new_one():
    places = Places()
    places.add_cell("<cell>", a_cell("%%time\nlook()", number=3, body_offset=1))
    (frame,) = frames_of("def other():\n    look()\nother()", "<timed exec>")
    assert places.file_of(frame) is None


def test_a_decorated_function_of_the_timed_cell_is_its_own():
    body = "@mark\ndef own():\n    look()\nown()"
    places = Places()
    places.add_cell("<cell>", a_cell("%%time\n" + body, number=3, body_offset=1))
    (frame,) = frames_of(body, "<timed exec>", mark=lambda function: function)
    assert places.place(frame, frame.f_lineno).function == "own"


def test_a_cell_without_timing_takes_the_timed_names_away():
    places = Places()
    places.add_cell("<one>", a_cell("%%time\nlook()", number=1, body_offset=1))
    places.add_cell("<two>", a_cell("look()", number=2))
    (frame,) = frames_of("look()", "<timed exec>")
    assert places.file_of(frame) is None


@pytest.mark.parametrize("code", ["def broken(:", "\0", "(" * 300 + ")" * 300])
def test_code_that_does_not_parse_has_no_tree(code):
    assert CodeFile(1, 0, code).tree is None
    assert CodeFile(1, 0, code, timed=True).function_lines == frozenset()


def test_only_so_many_cells_are_remembered():
    places = Places()
    for number in range(1_200):
        places.add_cell(f"<{number}>", a_cell("look()", number=number))
    (old,), (new,) = frames_of("look()", "<0>"), frames_of("look()", "<1199>")
    assert places.file_of(old) is None
    assert places.file_of(new).cell == 1_199
    assert [file.cell for file in places.latest(3)] == [1_199, 1_198, 1_197]
