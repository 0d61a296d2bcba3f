"""Shows cards: as a bundle of text, HTML and data under the cell, as a live widget, as text in a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_inspector.views.bundle import to_bundle
from torch_inspector.views.message import run_message
from torch_inspector.views.text import to_text

if TYPE_CHECKING:
    from torch_inspector.views.card import Card
    from torch_inspector.views.explain import Drawing
    from torch_inspector.views.widget import Answering

# Of kernels that no sidebar can talk to, one per process.
SESSION = uuid.uuid4().hex
VIEW_MIME = "application/vnd.jupyter.widget-view+json"
_WIDEST = 120


class Manner(NamedTuple):
    """How a card is to be shown."""

    panel: str
    """The setting `TorchInspector.panel`."""
    live: bool = False
    """True to make it a widget where a front end can hold one."""
    answer: Answering | None = None
    """Gets what the widget asks, and gives what is told to it, if anything."""


def show_card(shell: Any, card: Card, message: dict[str, Any] | None, manner: Manner) -> None:
    """Publishes a card under the running cell.

    Args:
        shell: The IPython shell.
        card: What to show.
        message: The run that it is about, as `message_of` makes it; None for cards that are about none.
        manner: How.
    """
    if manner.panel == "text" or not has_front_end(shell):
        shell.display_pub.publish({"text/plain": to_text(card, width=text_width())}, {})
        return
    model_id = _model_id(shell, card, message, manner)
    if message is None:
        bundle = to_bundle(card, {})
        bundle = {mime: bundle[mime] for mime in ("text/plain", "text/html")}
    else:
        bundle = to_bundle(card, {**message, "model_id": model_id})
    if model_id is not None and (manner.panel == "widget" or shows_only_views()):
        bundle[VIEW_MIME] = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    shell.display_pub.publish(bundle, {})


def message_of(card: Card, drawing: Drawing, session: str = "") -> dict[str, Any]:
    """A run as data, with the card that shows it.

    Args:
        card: What a front end should draw.
        drawing: What the card was drawn with.
        session: Which load of the extension it comes from, as the messages to the sidebar say it: a saved notebook
            can tell by it whether its panels belong to the kernel that is running. Empty where there is no feed.
    """
    return run_message(drawing.run, session=session or SESSION, card=card, drawing=drawing)


def has_front_end(shell: Any) -> bool:
    """True where output is more than a terminal: in a kernel, or where somebody records what is published."""
    return getattr(shell, "kernel", None) is not None or type(shell).__name__ != "TerminalInteractiveShell"


def can_hold_widgets(shell: Any) -> bool:
    """True in a kernel that somebody sits in front of; nbclient and nbconvert run without input and save no widgets."""
    kernel = getattr(shell, "kernel", None)
    return kernel is not None and bool(getattr(kernel, "_allow_stdin", False))


def shows_only_views() -> bool:
    """True in front ends that do not know our own type but show widgets: VS Code and Colab."""
    return "VSCODE_PID" in os.environ or "VSCODE_CWD" in os.environ or "google.colab" in sys.modules


def text_width() -> int:
    """Columns of the terminal, at most what reads well."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _model_id(shell: Any, card: Card, message: dict[str, Any] | None, manner: Manner) -> str | None:
    """The card as a widget, by its id; None where none is wanted or ipywidgets is missing."""
    if manner.panel != "widget" and not (manner.live and manner.panel == "auto" and can_hold_widgets(shell)):
        return None
    widget = _widget(card, message, manner.answer)
    return None if widget is None else str(widget.model_id)


def _widget(card: Card, message: dict[str, Any] | None, answer: Answering | None) -> Any:
    try:
        from torch_inspector.views.widget import to_widget
    except ImportError:
        return None
    return to_widget(card, message, answer)


def one_line(shell: Any, text: str) -> None:
    """Publishes one line of plain text."""
    data: Mapping[str, str] = {"text/plain": text}
    shell.display_pub.publish(dict(data), {})
