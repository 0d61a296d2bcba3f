import json
import re
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from tests.views.samples import CARDS, HERE, HOSTILE, hostile_cards
from tests.views.test_bundle import bundle_of, ten_findings
from tests.views.test_html import ATTRIBUTES, TAGS, Outline
from torch_inspector.pitfalls import all_pitfalls
from torch_inspector.views.card import Card, Code, Details, Line
from torch_inspector.views.data import card_data
from torch_inspector.views.explain import Drawing, finding_part, run_card
from torch_inspector.views.html import to_html
from torch_inspector.views.message import RUN_MIME
from torch_inspector.views.widget import SCRIPT

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node")
# Whole pages are drawn with fewer elements in script: it reads only paragraphs, headings and code.
SAME = [card for name, card in CARDS.items() if name not in {"page", "prose"}]


def drawn(tmp_path, cards, findings=()):
    """What `card.js` makes of the cards, in a document of a few lines."""
    module = tmp_path / "card.mjs"  # old versions of node take `.js` for something else
    module.write_text(SCRIPT, encoding="utf-8")
    program = [NODE, HERE / "static" / "fake_dom.mjs", module]
    done = subprocess.run(
        program,
        input=json.dumps({"cards": cards, "findings": findings}),
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return json.loads(done.stdout)


def shown(outline):
    """The outline with neighbouring texts joined and spaces made one."""
    return " ".join(" ".join(outline).split())


def in_html(card):
    """The same of the HTML, without its style sheet."""
    return shown([piece for piece in Outline(to_html(card)).seen if piece != "<style>"])


def reasons():
    """A card for each pitfall, with the reason out of its page."""
    run, _ = ten_findings()
    known = Drawing.of(run, all_pitfalls())
    first = replace(run.findings[0], evidence=())
    for pitfall in all_pitfalls():
        yield Card("t", "error", (finding_part(replace(first, slug=pitfall.slug), known),))


@needs_node
def test_script_and_html_draw_the_same(tmp_path):
    cards = [*SAME, run_card(Drawing.of(*ten_findings()))]
    for card, mine in zip(cards, drawn(tmp_path, [card_data(card) for card in cards])["cards"], strict=True):
        assert mine["isCard"]
        assert shown(mine["seen"]) == in_html(card)


@needs_node
def test_script_and_html_draw_the_reasons_of_all_pages_the_same(tmp_path):
    cards = list(reasons())
    assert len(cards) > 100
    for card, mine in zip(cards, drawn(tmp_path, [card_data(card) for card in cards])["cards"], strict=True):
        assert shown(mine["seen"]) == in_html(card)


@needs_node
def test_script_draws_what_a_bundle_holds(tmp_path):
    run, pitfalls = ten_findings()
    data = json.loads(bundle_of(run, pitfalls)[RUN_MIME]["card"])
    (mine, _) = drawn(tmp_path, [data, data])["cards"]
    assert shown(mine["seen"]) == in_html(run_card(Drawing.of(run, pitfalls)))
    assert mine["found"] == [part["slug"] for part in data["parts"] if part["kind"] == "details"]


@needs_node
def test_findings_that_cannot_be_opened_are_counted_too(tmp_path):
    inside = Details("error: a", (Line("x"),), tone="error", slug="a")
    card = card_data(Card("t", "error", (inside, Details("error: b", (), tone="error", slug="b"), inside)))
    assert drawn(tmp_path, [card, card])["cards"][0]["found"] == ["a", None, "a"]


@needs_node
def test_script_draws_prose_and_hostile_text(tmp_path):
    cards = [CARDS["page"], CARDS["prose"], *(card for text in HOSTILE.values() for card in hostile_cards(text))]
    result = drawn(tmp_path, [card_data(card) for card in cards])
    assert all(mine["isCard"] for mine in result["cards"])
    assert "<p class=ti-head> Why it hurts" in shown(result["cards"][0]["seen"])
    assert "<b>bold</b>" in shown(result["cards"][1]["seen"])
    # Markup in a text would be an element of its own; links and pictures come from numbers and slugs alone.
    for mine in result["cards"]:
        assert {tag[1:].rstrip(">").split()[0] for tag in mine["tags"]} <= TAGS
        assert set(mine["names"]) <= ATTRIBUTES
        assert not [tag for tag in mine["tags"] if tag.startswith("<a ") or re.match(r"<img (?!alt=)", tag)]
        links = [tag for tag in mine["linked"] if tag.startswith("<a ")]
        assert all(tag.startswith("<a class=ti-doc-link href=#torch-inspector-") for tag in links)


@needs_node
def test_script_follows_the_card(tmp_path):
    result = drawn(tmp_path, [card_data(CARDS["run"]), card_data(CARDS["state"])])
    assert result["followed"] == {"seen": result["cards"][1]["seen"], "left": 0}


NAMED = {"slug": "a-slug", "cell": 3, "line": 7, "run": 4}


def muted(tmp_path, findings, what="muted"):
    """What a widget does about the one finding of its card, told these."""
    inside = Details("error: x", (Line("y"),), tone="error", slug="a-slug")
    card = card_data(Card("t", "error", (inside,)))
    return drawn(tmp_path, [card, card], findings)[what]


@needs_node
def test_widget_asks_to_be_silent_and_says_what_it_is_told(tmp_path):
    done = muted(tmp_path, [NAMED])
    assert done["sent"][::2] == [
        {"v": 1, "ask": "mute", "slug": "a-slug", "scope": scope, "cell": cell, "line": 7, "on": True}
        for scope, cell in (("line", 3), ("cell", 4), ("always", 3))
    ]
    assert [one["on"] for one in done["sent"]] == [True, False] * 3
    waiting = "Waiting for the kernel, which answers when no cell runs."
    for at, words in enumerate(("Silent at this line", "Silent in this cell", "Silent in every notebook: a file")):
        first, second, silent, undone, refused, lost = done["said"][6 * at : 6 * at + 6]
        assert (first, second) == (waiting, waiting)
        assert silent.startswith(words)
        assert silent.endswith("Undo")
        assert undone == "It is reported again."
        assert refused == "Not done: no such line."
        assert lost == "Not done: the kernel has ended."


@needs_node
def test_focus_goes_on_in_the_answer_when_what_had_it_goes(tmp_path):
    focused = muted(tmp_path, [NAMED])["focused"]
    opened = ("I meant this", "Mute in this cell", "Mute always")
    assert focused == [one for button in opened for one in (button, "answer", "answer")]


@needs_node
def test_widget_is_silent_in_a_cell_about_what_has_no_line(tmp_path):
    assert [one["scope"] for one in muted(tmp_path, [{**NAMED, "line": None}])["sent"][::2]] == [
        "cell",
        "cell",
        "always",
    ]


@needs_node
def test_widget_offers_nothing_where_no_kernel_is_behind_it(tmp_path):
    done = muted(tmp_path, [NAMED], "alone")
    assert done == {"saved": 0, "live": 1, "said": "Not done: the kernel has ended."}


@needs_node
@pytest.mark.parametrize(
    "findings", [[], None, "x", [None], [{}], [{**NAMED, "slug": "b"}], [{**NAMED, "slug": "<b>"}]]
)
def test_widget_offers_nothing_about_what_it_does_not_know(tmp_path, findings):
    assert muted(tmp_path, findings)["groups"] == 0


@needs_node
@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ({}, []),
        ({"memory": True, "held": ""}, ["Free memory …"]),
        ({"memory": True, "held": "losses"}, ["Show holders", "Free memory …"]),
        ({"memory": "x", "held": {}}, []),
    ],
)
def test_widget_offers_a_look_at_memory_where_a_finding_is_about_it(tmp_path, more, offered):
    done = muted(tmp_path, [{**NAMED, **more}], "remembered")
    assert done["offered"] == ["I meant this", "Mute in this cell", "Mute always", *offered]


@needs_node
def test_widget_shows_holders_and_frees_only_after_it_has_asked(tmp_path):
    done = muted(tmp_path, [{**NAMED, "memory": True, "held": "losses"}], "remembered")
    asked = [(one["ask"], one.get("path"), one.get("item")) for one in done["sent"]]
    holders, account, free = ("holders", "losses", None), ("account", None, None), ("free", "", "outputs")
    assert asked == [*[holders] * 6, account, account, account, free, account, free]
    waiting, late, shown_ones, gone, unknown, none, *more = done["said"]
    refused, nothing, offer, sure, again, sure_again, freed, *last = more
    assert waiting == "Waiting for the kernel, which answers when no cell runs."
    assert late == "No answer yet: a cell is running, or the kernel has ended."
    assert shown_ones == "a[0] tensordel a copy <b> frame"
    assert gone == "Nothing is called losses any more."
    assert unknown == "It cannot be looked up by its name."
    assert none == "Nothing that Python can see holds it."
    assert refused == "A cell is running: ask again when it has ended."
    assert nothing == "The notebook itself holds no memory: your own variables do."
    assert offer == again == last[0] == "old outputs: 4.00 MB. Out holds them. free …"
    assert sure == sure_again == last[1] == "Out and _ forget them. No variable of yours changes. Free Cancel"
    assert freed == "1.50 KB came free."
    assert last[2] == "Nothing came free: something else holds it still."


@needs_node
def test_code_to_take_along_can_be_copied_and_says_so(tmp_path):
    inside = Details("error: x", (Code("old()", first=3, guilty=3), Code("new()", caption="Fix")), tone="error")
    card = card_data(Card("t", "error", (inside, Code("plain"), Code("del x", caption="These lines"))))
    done = drawn(tmp_path, [card, card])["copied"]
    assert done["texts"] == ["new()", "del x"]
    assert done["names"] == [["button", "copy: Fix"], ["button", "copy: These lines"]]
    assert (done["before"], done["said"]) == ([0, 0], ["copied", "copied"])


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
        assert mine["isCard"] or mine["seen"] == ["<p>", "This card cannot be drawn."]


STRANGE: list[Any] = [
    None,
    -1,
    1e300,
    0.5,
    True,
    "constructor",
    "__proto__",
    "x" * 100_000,
    [],
    [None] * 2_000,
    [[[[]]]],
    {},
]
FIELDS = {
    "line": ("text", "tone", "strong", "slug", "address"),
    "code": ("text", "caption", "first", "guilty"),
    "table": ("rows", "columns", "caption", "figures", "boxes", "curve"),
    "bars": ("rows", "lengths", "caption"),
    "details": ("summary", "parts", "more", "tone", "open", "slug", "lead"),
    "prose": ("text",),
}
PARTS: dict[str, dict[str, Any]] = {
    "line": {"text": "x"},
    "code": {"text": "x", "first": 1, "guilty": 1},
    "table": {"rows": [["a", "1"]], "boxes": [[1, 2, 3, 4]], "curve": [[0, 0], [1000, 1000]]},
    "bars": {"rows": [["a", "1"]], "lengths": [500]},
    "details": {"summary": "error: x", "tone": "error", "lead": "error", "parts": [{"kind": "line", "text": "y"}]},
    "prose": {"text": "x"},
}


@needs_node
def test_strange_fields_are_refused_or_drawn_and_nothing_runs(tmp_path):
    polluted = json.loads('{"__proto__": {"title": "x", "tone": "error", "parts": []}, "kind": "card"}')
    changed = [
        (kind, name, {**PARTS[kind], "kind": kind, name: value})
        for kind, names in FIELDS.items()
        for name in names
        for value in STRANGE
    ]
    good = [("", "", {**fields, "kind": kind}) for kind, fields in PARTS.items()]
    cards = [{"kind": "card", "title": "t", "tone": "hint", "parts": [part]} for _, _, part in (*changed, *good)]
    result = drawn(tmp_path, [*cards, polluted])
    assert result["polluted"] is None
    *mine, last = result["cards"]
    assert not last["isCard"]
    addresses = re.findall(r" (?:href|src)=(\S+)", " ".join(piece for one in mine for piece in one["seen"]))
    assert all(re.match(r"#torch-inspector-[a-z0-9-]+>?$|data:image/", one) for one in addresses)
    # What is right is drawn, and of each field at least one strange value is refused.
    assert all(one["isCard"] for one in mine[len(changed) :])
    refused = {(kind, name) for (kind, name, _), one in zip(changed, mine, strict=False) if not one["isCard"]}
    assert refused == {(kind, name) for kind, names in FIELDS.items() for name in names}


@needs_node
def test_links_lead_to_pages_and_configured_places_only(tmp_path):
    good, page = "https://docs.example/x.html", "#torch-inspector-missing-zero-grad"
    places = ("", good, "javascript:alert(1)", "https://x/\"onclick='", "data:text/html,x")
    line = card_data(Line("read", slug="missing-zero-grad"))
    cards = [
        {"kind": "card", "title": "t", "tone": "calm", "parts": [{**line, "address": address}]} for address in places
    ]
    for mine, place in zip(drawn(tmp_path, cards)["cards"], places, strict=True):
        link = f"<a class=ti-doc-link href={good if place == good else ''}{page}>"
        assert link in mine["linked"]
        # Where nobody opens pages, one without a place would lead nowhere.
        assert (link if place == good else "<code>") in mine["seen"]
        assert any(piece.startswith("<a ") for piece in mine["seen"]) == (place == good)


def test_script_makes_no_markup():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|import\s", SCRIPT)
