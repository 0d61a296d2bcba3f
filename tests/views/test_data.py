from tests.views.samples import EVERYTHING
from torch_inspector.views.card import Card, Line, Table
from torch_inspector.views.data import card_data


def test_fields_keep_their_names():
    card = Card("t", "hint", (Line("x"), Table((("a", "1"),), ("n", "c"), "cap", (1,))), slug="s")
    assert card_data(card) == {
        "kind": "card",
        "title": "t",
        "tone": "hint",
        "slug": "s",
        "parts": [
            {"kind": "line", "text": "x", "tone": "calm", "strong": False},
            {"kind": "table", "rows": [["a", "1"]], "columns": ["n", "c"], "caption": "cap", "figures": [1]},
        ],
    }


def test_every_kind_has_its_name():
    assert {part["kind"] for part in card_data(EVERYTHING)["parts"]} == {
        "line",
        "code",
        "table",
        "bars",
        "details",
        "card",
    }
