"""A card as a live widget, for programs that place it among other widgets. The only file that needs ipywidgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from torch_inspector.views.card import Card
from torch_inspector.views.data import card_data

_STATIC = Path(__file__).parent / "static"


class RunPanel(anywidget.AnyWidget):
    """Draws `card` and follows it: assign the data of another card, and every view shows that one."""

    _esm: ClassVar[Path] = _STATIC / "card.js"
    _css: ClassVar[Path] = _STATIC / "style.css"
    card = traitlets.Dict().tag(sync=True)
    """A card as `card_data` gives it."""
    message = traitlets.Dict()
    """The run's message, for Python only: front ends get it with the output."""


def to_widget(card: Card, message: dict[str, Any] | None = None) -> RunPanel:
    """A panel that shows the card.

    Its `model_id` belongs into the message of the output, so the message may also be set afterwards.
    """
    return RunPanel(card=card_data(card), message=message or {})
