from dataclasses import replace

import pytest

from tests.views.samples import FINDING
from torch_inspector.findings import Evidence
from torch_inspector.views.card import Bars, Table
from torch_inspector.views.evidence import evidence_parts


def parts(*evidence):
    return evidence_parts(replace(FINDING, evidence=evidence))


def stretched(axis, length):
    return f"axis {axis}: 1 → {length}"


def shapes(*texts):
    return parts(*(Evidence(f"side {number}", text) for number, text in enumerate(texts)))


def test_nothing_is_no_part():
    assert parts() == []


def test_bytes_are_bars_and_the_rest_a_table():
    drawn = parts(Evidence("a", 3, "count"), Evidence("b", 1 << 20, "bytes"), Evidence("c", 1 << 18, "bytes"))
    assert drawn == [Table((("a", "3"),)), Bars((("b", "1.00 MB"), ("c", "256 KB")), (1_000, 250))]


def test_one_amount_of_bytes_is_no_bar():
    assert parts(Evidence("b", 1024, "bytes"), Evidence("c", 0, "bytes")) == [Table((("b", "1.00 KB"), ("c", "0 B")))]


def test_amounts_that_are_about_the_same_are_no_bars():
    (table,) = parts(Evidence("held", 1 << 20, "bytes"), Evidence("before", (1 << 20) + 9_000, "bytes"))
    assert table == Table((("held", "1.00 MB"), ("before", "1.01 MB")))
    (bars,) = parts(Evidence("held", 900_000, "bytes"), Evidence("before", 1_000_000, "bytes"))
    assert isinstance(bars, Bars)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -5, 10**5000, "much"], ids=["nan", "inf", "negative", "huge", "a word"]
)
def test_amounts_that_cannot_be_are_no_bars(value):
    (table,) = parts(Evidence("a", value, "bytes"), Evidence("b", 2048, "bytes"))
    assert isinstance(table, Table)


def test_boxes_show_the_axis_that_was_stretched():
    (table,) = shapes("(64, 1)", "(64,)", "(64, 64)")
    assert [row[2] for row in table.rows] == [
        "axis 1: 1 → 64",
        "axis 0: 1 → 64",
        "",
    ]
    assert table.boxes == ((4, 48, 48, 48), (48, 4, 48, 48), (48, 48, 48, 48))


def test_boxes_have_about_the_form_of_the_shape():
    (table,) = shapes("(2, 1)", "(200,)", "(2, 200)")
    assert table.boxes == ((4, 16, 48, 16), (48, 4, 48, 16), (48, 16, 48, 16))


def test_axes_before_the_last_two_are_told_in_words():
    (table,) = shapes("(5, 8, 3)", "(7, 1, 8, 3)", "(7, 5, 8, 3)")
    assert [row[2] for row in table.rows][:2] == [
        "axis 0: 1 → 7",
        "axis 1: 1 → 5",
    ]
    assert table.boxes[0] == table.boxes[2]


@pytest.mark.parametrize(
    "texts",
    [
        ("(32, 5)", "(32,)", "(32, 32)"),
        ("(8, 2)", "(8, 2)"),
        ("(3,)", "(8, 2)"),
        ("(8, 2)",),
        ("(8, 2)", "(2,)"),
        ("( )", "(x, 1)"),
        ("()", "()"),
    ],
)
def test_shapes_that_were_not_stretched_are_a_plain_table(texts):
    (table,) = shapes(*texts)
    assert not table.boxes


def test_what_is_no_shape_stands_in_a_table_below():
    boxes, table = shapes("(4, 1)", "MseLoss <- Sub", "(4, 4)")
    assert [row[0] for row in boxes.rows] == ["side 0", "side 2"]
    assert table == Table((("side 1", "MseLoss <- Sub"),))


def test_what_the_sentence_or_the_line_says_is_not_repeated():
    said = replace(FINDING, message="`F.softmax(x)` of (4, 7) reads `x`, not nan.", code="    y = F.softmax(x)")
    inside = (Evidence("call", "F.softmax(x)"), Evidence("line", "y = F.softmax(x)"), Evidence("steps", 4, "count"))
    assert evidence_parts(replace(said, evidence=inside)) == [Table((("steps", "4"),))]
    alone = (Evidence("input", "x"), Evidence("shape", "(4, 7)"))
    assert evidence_parts(replace(said, evidence=alone)) == []
    together = (Evidence("shape", "(4, 7)"), Evidence("other", "(4, 70)"))
    (table,) = evidence_parts(replace(said, evidence=together))
    assert len(table.rows) == 2
    (table,) = evidence_parts(replace(said, evidence=(Evidence("part of a word", "soft"),)))
    assert table.rows == (("part of a word", "soft"),)


def test_more_than_twelve_things_are_cut():
    (table,) = parts(*(Evidence(str(number), number) for number in range(50)))
    assert len(table.rows) == 12


def course(*values, unit="count"):
    """The parts of values at calls 1, 2, 4, …"""
    return parts(*(Evidence(f"graph nodes at call {2**n}", value, unit) for n, value in enumerate(values)))


def test_one_quantity_at_rising_calls_is_a_line():
    assert course(10, 20, 30, 40) == [
        Table(
            (("call 1", "10"), ("call 8", "40")),
            caption="graph nodes",
            figures=(1,),
            curve=((0, 250), (142, 500), (428, 750), (1_000, 1_000)),
        )
    ]
    (table,) = course(1 << 20, 1 << 21, 1 << 22, 1 << 23, unit="bytes")
    assert table.rows == (("call 1", "1.00 MB"), ("call 8", "8.00 MB"))


@pytest.mark.parametrize("values", [(10, 20, 30), (10, 20, "many", 40), (10, 20, 0, 40)])
def test_few_or_odd_values_are_no_line(values):
    (table,) = course(*values)
    assert not table.curve
    assert len(table.rows) == len(values)


def test_calls_that_do_not_rise_are_no_line():
    (table,) = parts(*(Evidence(f"x at call {n}", 5) for n in (3, 2, 4, 5)))
    assert not table.curve


def test_what_stands_beside_a_line_stays():
    table, line = parts(Evidence("calls", 40), *(Evidence(f"x at call {n}", n) for n in range(1, 6)))
    assert table == Table((("calls", "40"),))
    assert line.curve
