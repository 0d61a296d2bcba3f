import pytest

from tests.views.samples import HOSTILE, hostile_cards
from torch_inspector.views.card import Card, Details
from torch_inspector.views.data import card_data


def texts(part):
    for value in part.values():
        yield from _texts(value)


def _texts(value):
    if isinstance(value, dict):
        yield from texts(value)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_card_is_harmless_by_construction(text):
    for card in hostile_cards(text):
        for held in texts(card_data(card)):
            held.encode()
            assert len(held) <= 20_010
            assert "\x1b" not in held
            assert "\u202e" not in held


def test_parts_keep_their_type_and_order():
    card = Card("t", "calm", (Details("s", (Card("u", "hint", ()),)),))
    assert card_data(card)["parts"][0]["parts"][0]["title"] == "u"
