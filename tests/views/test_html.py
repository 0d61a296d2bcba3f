import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from tests.views.samples import CARDS, EVERYTHING, HERE, HOSTILE, PROSE, hostile_cards
from tests.views.test_plain import ANY_TEXT
from torch_inspector.views.card import Card, Line, Prose
from torch_inspector.views.html import to_html, to_page
from torch_inspector.views.picture import DOT

STYLE = HERE.parents[1] / "torch_inspector" / "views" / "static" / "style.css"
TAGS = {
    "a",
    "blockquote",
    "br",
    "caption",
    "code",
    "details",
    "div",
    "em",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
ATTRIBUTES = {"class", "role", "aria-label", "aria-hidden", "href", "start", "title"}
ATTRIBUTES |= {"alt", "width", "height", "src", "open", "style"}
VOID = {"br", "hr", "img"}
SHAPE = (
    r"%3C(?:rect(?: (?:width|height)='\d+'| fill='(?:none|%234c8bf5)'| stroke='%234c8bf5'| stroke-dasharray='3 2')*"
    r"|polyline points='[\d, ]+' fill='none' stroke='%234c8bf5' stroke-width='2')/%3E"
)
PICTURE = re.compile(
    r"data:image/svg\+xml,%3Csvg xmlns='http://www\.w3\.org/2000/svg' viewBox='[-\d ]+'"
    rf"%3E(?:{SHAPE})+%3C/svg%3E|{re.escape(DOT)}"
)
LINK = re.compile(r"(?:https://[\w./-]*)?#torch-inspector-[a-z0-9-]+")


class Outline(HTMLParser):
    """Tags with class and attributes, texts, and what does not belong into a card."""

    def __init__(self, html):
        super().__init__()
        self.seen, self.bad, self.open = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.bad += [tag] if tag not in TAGS else []
        self.bad += [f"{name}={value}" for name, value in attrs if name not in ATTRIBUTES]
        hrefs = [value for name, value in attrs if name == "href"]
        self.bad += [value for value in hrefs if not value.startswith("https://") and not LINK.fullmatch(value)]
        self.bad += [value for name, value in attrs if name == "src" and not PICTURE.fullmatch(value)]
        self.open += [] if tag in VOID else [tag]
        self.seen.append(" ".join([f"<{tag}", *sorted(f"{name}={value or ''}" for name, value in attrs)]) + ">")

    def handle_endtag(self, tag):
        self.bad += [] if self.open and self.open.pop() == tag else [f"/{tag}"]

    def handle_data(self, data):
        if "style" not in self.open and data.strip():
            self.seen.append(" ".join(data.split()))


@pytest.mark.parametrize("name", CARDS)
def test_html_is_well_formed_and_without_script(name):
    html = to_html(CARDS[name])
    outline = Outline(html)
    assert (outline.bad, outline.open) == ([], [])
    assert not re.search(r"<script|\bon\w+=|javascript:", html)
    assert not re.search(r"<h\d", html), "front ends list real headings in the table of contents"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_stays_text(text):
    for card in hostile_cards(text):
        html = to_html(card)
        html.encode()
        outline = Outline(html)
        assert [bad for bad in outline.bad if not bad.startswith("/")] == []
        assert (outline.bad, outline.open) == ([], [])


@settings(max_examples=40)
@given(ANY_TEXT)
def test_any_text_stays_text(text):
    outline = Outline(to_html(Card(text, "error", (Line(text), Prose(text)))))
    assert [bad for bad in outline.bad if bad in TAGS] == []


def test_region_is_named_with_its_cell():
    assert 'role=region aria-label="torch_inspector, cell 5: 1 error, 2 warnings, 2 hints"' in to_html(CARDS["run"])


def test_severity_is_a_word_and_a_shape():
    html = to_html(CARDS["run"])
    assert "<summary><span class=ti-shape aria-hidden=true>■</span> <strong>error, line 4</strong>: " in html


@pytest.mark.parametrize("name", CARDS)
def test_pictures_have_a_text_or_say_that_they_need_none(name):
    pictures = re.findall(r"<img [^>]*>", to_html(CARDS[name]))
    assert all(' alt="' in picture for picture in pictures)


@pytest.mark.parametrize("name", CARDS)
def test_every_column_has_a_name(name):
    assert not re.search(r"<th[^>]*></th>", to_html(CARDS[name]))


def test_every_finding_can_be_opened_by_keyboard_and_is_named_by_word_and_line():
    html = to_html(CARDS["rerun"])
    said = re.findall(r"<summary>(.*)</summary>", html)
    assert [re.sub(r"<[^>]*>", "", one).split(":")[0] for one in said] == [
        "■ error, line 2, new",
        "▲ warning, line 4 of cell 1, still there",
    ]
    assert html.count("<details") == html.count("<summary>")


def test_guilty_line_is_told_by_a_sign_and_by_weight():
    assert "<strong class=ti-guilty><span class=ti-number>→ 2  </span>" in to_html(CARDS["rerun"])


def test_numbers_of_lines_are_not_copied():
    (rule,) = re.findall(r"\.ti-number \{([^}]*)\}", STYLE.read_text(encoding="utf-8"))[:1]
    assert "user-select: none" in rule


def test_link_holds_the_slug_in_its_address():
    place = "https://docs.example/x.html"
    slugs = ("missing-zero-grad", 'x" onclick="')
    html = to_html(Card("t", "calm", tuple(Line("read", slug=slug, address=place) for slug in slugs)))
    assert html.count("<a ") == 1
    assert f"<a class=ti-doc-link href={place}#torch-inspector-missing-zero-grad>" in html


def test_what_would_lead_nowhere_is_no_link():
    html = to_html(Card("t", "calm", (Line("%torchcheck explain it", slug="it"),)))
    assert "<p><code>%torchcheck explain it</code></p>" in html
    assert "<a " not in html


def test_pairs_of_backticks_are_code():
    html = to_html(EVERYTHING)
    assert "A title with <code>code</code>" in html
    assert "an error with one ` in it" in html


def test_shape_is_one_piece_that_no_line_breaks():
    html = to_html(Card("t", "error", (Line("`a` (1, 600, 64) met (64,) at (line 3, column 4)"),)))
    assert "<span class=ti-whole>(1, 600, 64)</span> met (64,) at (line 3, column 4)" in html
    assert ".ti-whole{display:inline-block}" in html


def test_page_keeps_code_and_escapes_html():
    html = to_html(PROSE)
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "<p class=ti-head>Head</p>" in html
    assert "<code class=language-python>x = 1" in html
    assert "<img" not in html


def test_a_line_has_the_colour_of_its_own_severity():
    html = to_html(Card("t", "error", (Line("a hint", "hint"), Line("plain"))))
    assert "<p class=ti-hint><span class=ti-shape aria-hidden=true>●</span> a hint</p>" in html
    assert "<p>plain</p>" in html


def test_a_page_of_its_own_has_one_heading():
    page = to_page(EVERYTHING)
    assert page.count("<p class=ti-title role=heading aria-level=1>") == page.count("role=heading") == 1
    assert "role=heading" not in to_html(EVERYTHING)
