"""Cards in narrow places: a small window, beside the numbers of cells; and in places as wide as what is in them."""

import pytest

from tests.views.samples import CARDS
from torch_inspector.views.card import Card, Table
from torch_inspector.views.html import to_html

PLACES = {
    "narrow": "<div id=place style='width: 240px; overflow: auto'>{}</div>",
    "as wide as needed": "<div style='width: 900px'><div id=place style='display: inline-block'>{}</div></div>",
}
WIDTHS = "() => [place.clientWidth, place.querySelector('.ti-card').offsetWidth]"


@pytest.fixture
def widths(browser):
    """How wide a place is, and how wide the card in it; a table in it may be wider."""
    page = browser.new_page()

    def measure(place, card):
        page.set_content(f"<!doctype html>{PLACES[place].format(to_html(card))}")
        return page.evaluate(WIDTHS)

    yield measure
    page.close()


@pytest.mark.parametrize("name", ["run", "rerun", "clean"])
def test_a_card_is_as_narrow_as_its_place(widths, name):
    assert widths("narrow", CARDS[name]) == [240, 240]


def test_a_card_that_may_choose_is_wide_enough_to_read(widths):
    assert widths("as wide as needed", CARDS["run"])[0] >= 300


def test_rows_of_many_columns_are_stacked_where_they_are_too_wide(browser):
    columns = ("tensor", "shape", "dtype", "device", "size", "grad_fn")
    rows = (("encoder.layers[0].weight", "(64, 3, 224, 224)", "float32", "cpu", "38.5 MB", ""),)
    card = Card("t", "calm", (Table(rows, columns, "New tensors", (4,)),))
    page = browser.new_page()
    displays = []
    for width in (900, 240):
        page.set_content(f"<!doctype html><div style='width: {width}px'>{to_html(card)}</div>")
        assert page.evaluate("() => document.querySelector('table').scrollWidth") <= width
        displays.append(page.evaluate("() => getComputedStyle(document.querySelector('tbody td')).display"))
    seen = page.evaluate("() => getComputedStyle(document.querySelector('td:empty'), '::after').content")
    page.close()
    assert displays == ["table-cell", "inline"]
    assert seen == '"\u2013"', "a column that says nothing keeps its place in the row"


def test_a_caption_is_not_broken_where_there_is_room(browser):
    table = Table(
        (("first", "4"), ("last", "2")), caption="loss, as far as looked at, in powers of ten", curve=((0, 0),) * 3
    )
    page = browser.new_page()
    heights = []
    for width in (900, 240):
        page.set_content(f"<!doctype html><div style='width: {width}px'>{to_html(Card('t', 'calm', (table,)))}</div>")
        heights.append(page.evaluate("() => document.querySelector('caption').offsetHeight"))
        assert page.evaluate("() => document.querySelector('table').offsetWidth") <= width
    page.close()
    assert heights[0] < heights[1]
