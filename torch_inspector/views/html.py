"""A card as HTML that needs no script: it still works in a saved, exported or untrusted notebook.

Headings of pages become paragraphs, because front ends collect real headings of outputs in the table of contents.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from torch_inspector.views.card import SHAPES, Card

HERE = Path(__file__).parent


def to_html(card: Card) -> str:
    """The card with its style sheet, as one element that can stand anywhere in a page."""
    return _template().render(card=card)


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(prose=_prose, inline=_inline, bar=_bar)
    style = (HERE / "static" / "style.css").read_text(encoding="utf-8")
    environment.globals.update(shapes=SHAPES, style=Markup(style))  # noqa: S704 - our own file
    return environment.get_template("card.html.j2")


def _prose(text: str) -> Markup:
    markdown = _markdown()
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
        if token.type == "heading_open":
            token.attrSet("class", "ti-head")
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704 - HTML in it is escaped


def _inline(text: str) -> Markup:
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # one backtick has no partner
        return escape(text)
    return Markup().join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(pieces))


def _bar(length: int) -> str:
    """A bar as the address of a picture, which untrusted notebooks show too; `length` in thousandths."""
    return (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1000 50' "
        f"preserveAspectRatio='none'%3E%3Crect width='{int(length)}' height='50' fill='%234c8bf5'/%3E%3C/svg%3E"
    )


@cache
def _markdown() -> MarkdownIt:
    # Images are left out: drawing a card must not ask another server for anything.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
