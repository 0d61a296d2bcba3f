import xml.etree.ElementTree as ET
from base64 import b64decode
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from tests.views.test_contrast import contrast
from torch_inspector.views.picture import BAR_WIDTH, COLOUR, CURVE_SIZE, DOT, bar, box, curve

PART = st.integers(0, 1_000)


def svg(address):
    """The picture behind an address."""
    kind, _, text = address.partition(",")
    assert kind == "data:image/svg+xml"
    assert not set(text) & set('"<>#\n')
    return ET.fromstring(unquote(text))  # noqa: S314 - made here


@given(st.lists(st.tuples(PART, PART), min_size=1, max_size=40))
def test_curve_stays_inside(points):
    (line,) = svg(curve(points))
    placed = [tuple(map(int, point.split(","))) for point in line.attrib["points"].split()]
    assert len(placed) == len(points)
    assert all(0 <= x <= CURVE_SIZE[0] and 0 <= y <= CURVE_SIZE[1] for x, y in placed)


def test_curve_goes_up_with_the_values():
    (line,) = svg(curve([(0, 0), (1_000, 1_000)]))
    (_, low), (_, high) = (map(int, point.split(",")) for point in line.attrib["points"].split())
    assert high < low


def test_box_stands_inside_the_one_that_it_was_stretched_to():
    whole, own = svg(box(4, 48, 48, 48))
    assert (whole.attrib["width"], whole.attrib["fill"]) == ("48", "none")
    assert (own.attrib["width"], own.attrib["height"]) == ("4", "48")


def test_bar_has_its_length_and_what_is_there_is_seen():
    assert [bar(length) for length in (0, 1, 500, 1_000)] == [0, 1, BAR_WIDTH // 2, BAR_WIDTH]


def test_dot_of_bars_is_one_pixel_in_the_colour_of_pictures():
    data = b64decode(DOT.removeprefix("data:image/gif;base64,"))
    assert data.startswith(b"GIF87a\x01\x00\x01\x00")
    assert bytes.fromhex(COLOUR.removeprefix("#")) in data


def test_pictures_are_seen_on_white_and_black():
    assert all(contrast(COLOUR, ground) >= 3 for ground in ("#ffffff", "#111111", "#000000"))
