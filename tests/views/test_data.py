from tests.views.samples import EVERYTHING
from torch_inspector.views.card import Card, Line, Table
from torch_inspector.views.data import card_data


def test_fields_keep_their_names_and_those_with_their_default_are_left_out():
    card = Card("t", "hint", (Line("x"), Table((("a", "1"),), ("n", "c"), "cap", (1,))), slug="s")
    assert card_data(card) == {
        "kind": "card",
        "title": "t",
        "tone": "hint",
        "slug": "s",
        "parts": [
            {"kind": "line", "text": "x"},
            {"kind": "table", "rows": [["a", "1"]], "columns": ["n", "c"], "caption": "cap", "figures": [1]},
        ],
    }
    strong = card_data(Line("x", "error", strong=True, slug="s", address="https://x"))
    assert strong == {
        "kind": "line", "text": "x", "tone": "error", "strong": True, "slug": "s", "address": "https://x"
    }  # fmt: skip


def test_every_kind_has_its_name():
    assert {part["kind"] for part in card_data(EVERYTHING)["parts"]} == {
        "line",
        "code",
        "table",
        "bars",
        "details",
        "card",
    }
