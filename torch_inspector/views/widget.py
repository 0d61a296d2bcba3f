"""A card as a live widget, for programs that place it among other widgets. The only file that needs ipywidgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from torch_inspector.views.bundle import VIEW_MIME
from torch_inspector.views.card import Card
from torch_inspector.views.data import card_data

_STATIC = Path(__file__).parent / "static"


def _texts(*names: str) -> str:
    return "".join((_STATIC / name).read_text(encoding="utf-8") for name in names)


SCRIPT = _texts("card.js", "actions.js", "widget.js")
"""One module: front ends get it as text, which cannot import what lies beside it."""
STYLE = _texts("style.css", "widget.css")

Answering = Callable[[Any, Callable[[dict[str, Any]], None]], None]
"""Gets what a panel asks, and what to call with each answer, now or later."""


class RunPanel(anywidget.AnyWidget):
    """Draws `card` and follows it: assign the data of another card, and every view shows that one."""

    _esm: ClassVar[str] = SCRIPT
    _css: ClassVar[str] = STYLE
    card = traitlets.Dict().tag(sync=True)
    """A card as `card_data` gives it."""
    findings = traitlets.List(traitlets.Dict()).tag(sync=True)
    """Those that something can be done about, in the order of the card; none where nobody would answer."""
    message = traitlets.Dict()
    """The run's message, for Python only: front ends get it with the output."""
    answered = traitlets.Bool()
    """True where something answers what is clicked."""

    def show(self, card: Card, message: dict[str, Any]) -> None:
        """Shows another card, with the run that it is about, as `run_message` makes it."""
        with self.hold_sync():
            self.message = message
            self.findings = _named(message) if self.answered else []
            self.card = card_data(card)


def to_widget(card: Card, message: dict[str, Any] | None = None, answer: Answering | None = None) -> RunPanel:
    """A panel that shows the card.

    Its `model_id` belongs into the message of the output, so the message may also be set afterwards.

    Args:
        card: What to show.
        message: The run that it is about, as `run_message` makes it.
        answer: Answers the panel, whose questions come from outside.
    """
    told, is_answered = message or {}, answer is not None
    named = _named(told) if is_answered else []
    panel = RunPanel(card=card_data(card), message=told, findings=named, answered=is_answered)
    if answer is not None:
        panel.on_msg(lambda _panel, asked, _buffers: answer(asked, panel.send))
    return panel


def _named(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What a panel must know of each finding to say which one it means, and what can be asked about it."""
    return [{**_place(one), "run": message["cell"], **_memory(one)} for one in message.get("findings", ())]


def _place(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("slug", "cell", "line")}


def _memory(found: dict[str, Any]) -> dict[str, Any]:
    """Whether it is about memory, and the path of the object that keeps that, if it is known."""
    is_about_it = any(fact["unit"] == "bytes" for fact in found["evidence"])
    return {"memory": is_about_it, "held": found["held"] if is_about_it else ""}


def view_of(panel: RunPanel) -> tuple[dict[str, Any], dict[str, Any]]:
    """What shows the panel where widgets are shown, and the metadata that Colab needs for that: by MIME type."""
    data, metadata = panel._repr_mimebundle_() or ({}, {})
    return {mime: value for mime, value in data.items() if mime == VIEW_MIME}, metadata
