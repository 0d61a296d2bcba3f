import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.views.samples import CARDS, EVERYTHING, EXPECTED, HOSTILE, hostile_cards
from tests.views.test_plain import ANY_TEXT
from torch_inspector.views.card import Card, Code, Line
from torch_inspector.views.text import to_text


@pytest.mark.parametrize("name", CARDS)
def test_text_is_as_expected(name):
    assert to_text(CARDS[name]) == (EXPECTED / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [20, 33, 80, 120])
@pytest.mark.parametrize("name", CARDS)
def test_text_fits_the_width(name, width):
    assert max(map(cell_len, to_text(CARDS[name], width).split("\n"))) <= width


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_fits_and_moves_no_cursor(text):
    for card in hostile_cards(text):
        drawn = to_text(card)
        drawn.encode()
        assert max(map(cell_len, drawn.split("\n"))) <= 80
        assert all(character == "\n" or character.isprintable() for character in drawn)


def test_long_lines_of_code_go_on_below_their_text():
    card = Card("t", "calm", (Code("x = 1\n" + "long_name = " * 8, first=9, guilty=10),))
    assert to_text(card, 40).split("\n")[1:4] == [
        "     9  x = 1",
        "  → 10  long_name = long_name =",
        "        long_name = long_name =",
    ]


def test_rich_markup_is_only_text():
    assert to_text(Card("[bold]x[/bold] :smile:", "calm", ())) == "[bold]x[/bold] :smile:\n"


def test_colour_is_asked_for():
    assert "\x1b[" not in to_text(EVERYTHING)
    assert "\x1b[" in to_text(EVERYTHING, colour=True)


def test_surroundings_do_not_matter(monkeypatch):
    plain = to_text(EVERYTHING)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    assert to_text(EVERYTHING) == plain


@settings(max_examples=40)
@given(ANY_TEXT, st.integers(0, 100))
def test_any_text_fits_any_width(text, width):
    drawn = to_text(Card(text, "hint", (Line(text),)), width)
    assert max(map(cell_len, drawn.split("\n"))) <= max(width, 20)
