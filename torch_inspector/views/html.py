"""A card as HTML that needs no script: it still works in a saved, exported or untrusted notebook.

Headings of pages become paragraphs, because front ends collect real headings of outputs in the table of contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markdown_it import MarkdownIt
from markupsafe import Markup

from torch_inspector.views.card import SHAPES, Card, Line
from torch_inspector.views.picture import DOT, bar, box, curve
from torch_inspector.views.style import style_for

HERE = Path(__file__).parent
# Values of attributes that need no quotes; in texts they are escaped.
_QUOTES = re.compile(r'(?<= )([a-z-]+)="([\w/.:#-]*\w)"')
# What stands between two tags only for those who read the template; in code, ends of lines have a meaning.
_BETWEEN = re.compile(r"(<pre>.*?</pre>)|(?<=>)\n+(?=<)", re.DOTALL)
# A shape of two and more axes, which no end of a line is to break.
_WHOLE = re.compile(r"(\((?:[0-9]{1,15}, ){1,7}[0-9]{1,15}\))")


def to_html(card: Card) -> str:
    """The card with its style sheet, as one element that can stand anywhere in a page."""
    drawn = _BETWEEN.sub(r"\1", _template("card.html.j2").render(card=card)).strip()
    head, body = _QUOTES.sub(r"\1=\2", drawn).split(">", 1)
    return f"{head}><style>{style_for(drawn)}</style>{body}"


def to_page(card: Card) -> str:
    """The card as a page of its own, which needs no other file."""
    # Here the title is a heading: no table of contents of a notebook collects it.
    html = to_html(card).replace("<p class=ti-title>", "<p class=ti-title role=heading aria-level=1>", 1)
    drawn = Markup(html)  # noqa: S704 - all texts in it are escaped
    return _template("page.html.j2").render(card=card, drawn=drawn)


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Addresses of pictures are made of whole numbers and need no escapes.
    pictures: dict[str, Callable[[Any], str]] = {"curve": curve, "box": lambda sizes: box(*sizes)}
    drawn = {name: _unescaped(picture) for name, picture in pictures.items()}
    environment.filters.update(prose=_prose, inline=_inline, **drawn)
    environment.tests.update(drawable=all, link=lambda part: isinstance(part, Line) and bool(part.slug))
    environment.globals.update(shapes=SHAPES, dot=Markup(DOT), bar=bar)  # noqa: S704 - our own
    return environment


def _unescaped(picture: Callable[[Any], str]) -> Callable[[Any], Markup]:
    return lambda numbers: Markup(picture(numbers))  # noqa: S704 - see above


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
        return _whole(text)
    return Markup().join(Markup("<code>{}</code>").format(p) if i % 2 else _whole(p) for i, p in enumerate(pieces))


def _whole(text: str) -> Markup:
    pieces = _WHOLE.split(text)
    shown = (Markup('<span class="ti-whole">{}</span>').format(p) if i % 2 else p for i, p in enumerate(pieces))
    return Markup().join(shown)


@cache
def _markdown() -> MarkdownIt:
    # Images are left out: drawing a card must not ask another server for anything.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
