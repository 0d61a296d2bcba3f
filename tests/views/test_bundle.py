import json
from dataclasses import replace

import pytest

from tests.views.samples import CARDS, FINDING, HOSTILE, PITFALL, RUN, hostile_cards
from torch_inspector.views.bundle import to_bundle
from torch_inspector.views.explain import Drawing, run_card
from torch_inspector.views.message import RUN_MIME, run_message

TEXT_LIMIT, HTML_LIMIT, JSON_LIMIT = 1_000, 5_000, 3_000


def test_one_finding_is_a_small_bundle():
    run = replace(RUN, findings=(FINDING,))
    drawing = Drawing.of(run, [PITFALL])
    card = run_card(drawing)
    bundle = to_bundle(card, run_message(run, session="s", card=card, drawing=drawing))
    assert list(bundle) == ["text/plain", "text/html", RUN_MIME]
    sizes = [len(data.encode() if isinstance(data, str) else json.dumps(data)) for data in bundle.values()]
    assert sizes[0] <= TEXT_LIMIT
    assert sizes[1] <= HTML_LIMIT
    assert sizes[2] <= JSON_LIMIT
    assert sum(sizes) <= 8_000


@pytest.mark.parametrize("name", CARDS)
def test_every_card_makes_a_bundle(name):
    assert all(to_bundle(CARDS[name], {"version": 1}).values())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_makes_a_bundle(text):
    for card in hostile_cards(text):
        bundle = to_bundle(card, {text: [text, float("nan"), 10**5000]})
        json.dumps(bundle, ensure_ascii=False, allow_nan=False).encode()
