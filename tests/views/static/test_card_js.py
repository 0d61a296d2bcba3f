import json
import re
import shutil
import subprocess

import pytest

from tests.views.samples import CARDS, HERE, HOSTILE, hostile_cards
from tests.views.test_html import STYLE, Outline
from torch_inspector.views.data import card_data
from torch_inspector.views.html import to_html

SCRIPT = STYLE.with_name("card.js")
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node")
# Prose is drawn with fewer elements in script: it reads only paragraphs, headings and code.
SAME = [card for name, card in CARDS.items() if name not in {"run", "rerun", "report", "page", "prose"}]


def drawn(tmp_path, cards):
    """What `card.js` makes of the cards, in a document of a few lines."""
    module = tmp_path / "card.mjs"  # old versions of node take `.js` for something else
    shutil.copy(SCRIPT, module)
    program = [NODE, HERE / "static" / "fake_dom.mjs", module]
    done = subprocess.run(
        program, input=json.dumps(cards), capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return json.loads(done.stdout)


def shown(outline):
    """The outline with neighbouring texts joined and spaces made one."""
    joined = " ".join(piece if re.fullmatch(r"<\w+ .*>", piece) else piece.strip() for piece in outline)
    return " ".join(joined.split())


@needs_node
def test_script_and_html_draw_the_same(tmp_path):
    result = drawn(tmp_path, [card_data(card) for card in SAME])
    for card, mine in zip(SAME, result["cards"], strict=True):
        assert mine["isCard"]
        assert shown(mine["seen"]) == shown([piece for piece in Outline(to_html(card)).seen if piece != "<style >"])
        assert mine["attributes"] == {"role": "region", "aria-label": card.title}


@needs_node
def test_script_draws_prose_and_hostile_text(tmp_path):
    cards = [
        CARDS["page"],
        CARDS["prose"],
        CARDS["rerun"],
        CARDS["report"],
        *(card for text in HOSTILE.values() for card in hostile_cards(text)),
    ]
    result = drawn(tmp_path, [card_data(card) for card in cards])
    assert all(mine["isCard"] for mine in result["cards"])
    assert "<p ti-head> Why it hurts" in shown(result["cards"][0]["seen"])
    assert "<b>bold</b>" in shown(result["cards"][1]["seen"])


@needs_node
def test_script_follows_the_card(tmp_path):
    result = drawn(tmp_path, [card_data(CARDS["run"]), card_data(CARDS["state"])])
    assert result["followed"] == {"seen": result["cards"][1]["seen"], "left": 0}


@needs_node
@pytest.mark.parametrize("at", ["kind", "title", "tone", "parts"])
def test_script_refuses_what_is_no_card(tmp_path, at):
    good = card_data(CARDS["parts"])
    deep = good
    for _ in range(20):
        deep = {**good, "parts": [deep]}
    bad: list[object] = [
        None,
        "card",
        [],
        {**good, at: 7},
        {**good, at: "constructor"},
        {**good, "parts": [{"kind": "line"}]},
        deep,
    ]
    for mine in drawn(tmp_path, bad)["cards"]:
        assert not mine["isCard"] or at == "title"
        assert mine["isCard"] or mine["seen"] == ["<p >", "This card cannot be drawn."]


def test_script_makes_no_markup():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|import\s", SCRIPT.read_text("utf-8"))
