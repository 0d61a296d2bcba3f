"""A card and its message as one MIME bundle, from which each front end takes the best that it can draw."""

from __future__ import annotations

import json
from typing import Any

from torch_inspector.views.card import Card
from torch_inspector.views.html import to_html
from torch_inspector.views.message import RUN_MIME, encodable
from torch_inspector.views.text import to_text

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
"""What shows a widget by its id."""


def to_bundle(card: Card, message: dict[str, Any]) -> dict[str, Any]:
    """What to give to `IPython.display.display(..., raw=True)`.

    There is no widget view in it: a saved notebook with one shows an error instead of the HTML when it is opened again.
    A front end that wants the live widget finds `model_id` in the message.
    """
    return {"text/plain": to_text(card), "text/html": to_html(card), RUN_MIME: _packed(encodable(message))}


def _packed(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its card as JSON text: notebook files give every value of nested data a line of its own."""
    card = message.get("card")
    text = json.dumps(card, ensure_ascii=False, separators=(",", ":")) if card is not None else None
    return {**message, "card": text} if "card" in message else message
