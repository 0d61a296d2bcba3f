from dataclasses import replace

import pytest

from tests.fakes import SOURCE, a_cell, a_run
from tests.views.samples import FINDING, HOSTILE
from torch_inspector.views.context import context_of


def around(line, source=SOURCE, **changes):
    """Number of the first line and the lines that are shown for a finding at one line."""
    code = context_of(replace(FINDING, line=line, cell=1, code="", **changes), a_run(source=source))
    return code.first, code.guilty, code.text.split("\n")


def test_two_lines_on_each_side():
    source = "\n".join(f"line{number}" for number in range(1, 9))
    assert around(4, source) == (2, 4, ["line2", "line3", "line4", "line5", "line6"])


@pytest.mark.parametrize(("line", "first", "count"), [(1, 1, 3), (2, 1, 4), (4, 2, 3)])
def test_ends_of_the_cell(line, first, count):
    assert (around(line)[0], len(around(line)[2])) == (first, count)


def test_indentation_of_all_and_blank_ends_go():
    assert around(4, "\n\nif x:\n    a()\n\n    b()\n\n") == (3, 4, ["if x:", "    a()", "", "    b()"])
    assert around(5, "if x:\n\n\n\n\ta()\n    b()") == (5, 5, ["a()", "b()"])


def test_lines_of_another_cell_come_from_there():
    earlier = a_run(cell=a_cell("first()\nsecond()", number=1))
    run = a_run(cell=a_cell("third()", number=2), earlier=(earlier,))
    assert context_of(replace(FINDING, line=2, cell=1, code=""), run).text == "first()\nsecond()"


@pytest.mark.parametrize("line", [99, 3])
def test_line_that_is_not_there_is_shown_as_the_finding_has_it(line):
    code = context_of(replace(FINDING, line=line, cell=1), a_run())
    assert (code.first, code.guilty, code.text) == (line, line, "optimizer.step()")


def test_without_line_or_text():
    assert context_of(replace(FINDING, line=None), a_run()).first == 0
    assert context_of(replace(FINDING, line=None, code=""), a_run()) is None
    assert context_of(replace(FINDING, cell=77, code=""), a_run()) is None
    assert context_of(replace(FINDING, line=-1, code=""), a_run()) is None
    assert context_of(FINDING, None).guilty == 4


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_numbers_stay_right_whatever_stands_around(text):
    source = f"{text.splitlines()[0]}\n# {text[:200_000]}".replace("\n", " ") + "\nguilty()\n" + text
    code = context_of(
        replace(FINDING, line=len(source.split("guilty")[0].splitlines()) + 1, cell=1, code=""), a_run(source=source)
    )
    assert [line for _, line, is_guilty in code.numbered() if is_guilty] == ["guilty()"]
    assert len(code.text) <= 2_001
