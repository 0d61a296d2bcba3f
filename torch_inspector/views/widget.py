"""A card as a live widget, for programs that place it among other widgets. The only file that needs ipywidgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from torch_inspector.views.card import Card
from torch_inspector.views.data import card_data

_STATIC = Path(__file__).parent / "static"
SCRIPT = "".join((_STATIC / name).read_text(encoding="utf-8") for name in ("card.js", "widget.js"))
"""One module: front ends get it as text, which cannot import what lies beside it."""

Answering = Callable[[Any], dict[str, Any] | None]


class RunPanel(anywidget.AnyWidget):
    """Draws `card` and follows it: assign the data of another card, and every view shows that one."""

    _esm: ClassVar[str] = SCRIPT
    _css: ClassVar[Path] = _STATIC / "style.css"
    card = traitlets.Dict().tag(sync=True)
    """A card as `card_data` gives it."""
    findings = traitlets.List(traitlets.Dict()).tag(sync=True)
    """Those that the user can be silent about, in the order of the card; none where nobody would answer."""
    message = traitlets.Dict()
    """The run's message, for Python only: front ends get it with the output."""


def to_widget(card: Card, message: dict[str, Any] | None = None, answer: Answering | None = None) -> RunPanel:
    """A panel that shows the card.

    Its `model_id` belongs into the message of the output, so the message may also be set afterwards.

    Args:
        card: What to show.
        message: The run that it is about, as `run_message` makes it.
        answer: Gets what the panel asks, which comes from outside, and gives what is told to it, if anything.
    """
    told = message or {}
    panel = RunPanel(card=card_data(card), message=told, findings=_named(told) if answer is not None else [])
    if answer is not None:
        panel.on_msg(lambda _panel, asked, _buffers: _tell(panel, answer(asked)))
    return panel


def _named(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What a panel must know of each finding to say which one it means."""
    names = ("slug", "cell", "line")
    return [{**{name: one[name] for name in names}, "run": message["cell"]} for one in message.get("findings", ())]


def _tell(panel: RunPanel, answer: dict[str, Any] | None) -> None:
    if answer is not None:
        panel.send(answer)
