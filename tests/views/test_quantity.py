import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_inspector.views.quantity import amount, count, seconds, several, shape, size


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1 << 10, "1.00 KB"),
        (10_235, "10.0 KB"),
        (12_900_000, "12.3 MB"),
        (-(1 << 20), "-1.00 MB"),
        (1_406_600_000, "1.31 GB"),
        (1 << 50, "1,024 TB"),
        (1 << 60, "1.153e+18 B"),
        (math.nan, "nan B"),
    ],
)
def test_size(nbytes, text):
    assert size(nbytes) == text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0 s"),
        (1.3e-5, "13.0 µs"),
        (0.0012, "1.20 ms"),
        (2.5, "2.50 s"),
        (125, "2 min 5 s"),
        (3725, "1 h 2 min"),
        (math.inf, "inf s"),
        (-1.5, "-1.5 s"),
    ],
)
def test_seconds(duration_s, text):
    assert seconds(duration_s) == text


def test_count_and_nouns():
    assert count(1234) == "1,234"
    assert count(1234, complete=False) == "at least 1,234"
    assert count(0.123456) == "0.1235"
    assert [count(number) for number in (1798.6, 65536.0, 107_996.4, 1e12)] == [
        *("1,799", "65,536", "107,996", "1,000,000,000,000"),
    ]
    assert [count(number) for number in (999.96, 12_345_678.9, -1e15)] == ["1000", "1.235e+07", "-1e+15"]
    assert (several(1, "finding"), several(3, "finding")) == ("1 finding", "3 findings")


def test_shape():
    assert [shape(sizes) for sizes in (None, (), (5,), (1024, 1))] == ["", "()", "(5,)", "(1024, 1)"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3 << 20, "bytes", "3.00 MB"),
        (0.5, "s", "500 ms"),
        (1200, "count", "1,200"),
        (3, "", "3"),
        (0.25, "per step", "0.25 per step"),
        ("(5, 1)", "", "(5, 1)"),
        ("a\nb", "count", r"a\nb"),
    ],
)
def test_amount(value, unit, text):
    assert amount(value, unit) == text


@given(
    st.integers() | st.floats() | st.just(10**5000) | st.just(-(10**5000)),
    st.sampled_from(["bytes", "s", "count", "x"]),
)
def test_any_number_is_short(value, unit):
    assert len(amount(value, unit)) < 40
