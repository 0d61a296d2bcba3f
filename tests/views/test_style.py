import re

import pytest

from tests.views.samples import CARDS
from torch_inspector.views.html import to_html
from torch_inspector.views.style import FILE, style_for

# Weighs more than any number of classes.
HEAVY = ".ti-card:not(#_) "


def style_of(card):
    (style,) = re.findall(r"<style>(.*?)</style>", to_html(card))
    return style


@pytest.mark.parametrize("name", CARDS)
def test_style_of_a_card_is_small(name):
    style = style_of(CARDS[name])
    # Findings have no table that is so wide.
    assert 0 < len(style.encode()) <= (2_300 if "ti-wide" in style else 1_900)


def test_with_everything_there_the_whole_sheet_is_used():
    text = FILE.read_text(encoding="utf-8")
    names = re.findall(r"\.(ti-[\w-]+)", text)
    tags = (
        "p",
        "pre",
        "details",
        "table",
        "code",
        "caption",
        "tr",
        "th",
        "td",
        "thead",
        "tbody",
        "img",
        "summary",
        "a",
    )
    html = "".join(f"<{tag}>" for tag in tags) + f'<p class="{" ".join(names)}">'
    assert re.sub(r"[\s;]", "", style_for(html).replace(HEAVY, ".ti-card ")) == re.sub(r"[\s;]", "", text)


def test_what_holds_for_narrow_panels_comes_last_and_only_where_it_says_something():
    assert style_for('<div class="ti-card"><td>').endswith(
        "@container (max-width:30em){.ti-card:not(#_) :is(th,td){font-size:.85em;padding-right:6px}}"
    )
    assert "@container" not in style_for('<p class="ti-hint">')


def test_rules_about_what_is_not_there_are_left_out():
    assert style_for('<div class="ti-card ti-hint"><p>') == style_for('<p class="ti-hint ti-card">')
    style = style_for('<div class="ti-card ti-hint"><p>')
    assert ".ti-card:not(#_) p{margin:2px 0}" in style
    assert ".ti-hint{--ti-tone:#0288d1}" in style
    assert not re.search(r"table|pre|ti-error|ti-bars|ti-finding", style)


def test_signs_with_a_meaning_keep_their_blanks():
    assert ".ti-card:not(#_) .ti-bars :is(th,td){" in style_for('<table class="ti-card ti-bars"><th>')
    assert ".ti-card:not(#_) :focus-visible{" in style_for('<a class="ti-card">')


def test_rules_for_elements_weigh_more_than_those_of_the_page_around():
    """Front ends have rules like `.jp-ThemedContainer :not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td`."""
    for name in CARDS:
        for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", style_of(CARDS[name])):
            for selector in re.split(r",(?![^(]*\))", selectors):
                with_tag = re.search(r"(?<![\w.#-])[a-z]+", re.sub(r":(?!is)[\w-]+(\([^)]*\))?", "", selector))
                assert not with_tag or HEAVY in selector, selector
