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
    from torch_inspector.views.widget import Answering, RunPanel

# Of kernels that no sidebar can talk to, one per process.
SESSION = uuid.uuid4().hex
_WIDEST = 120
_VSCODE = ("VSCODE_PID", "VSCODE_CWD")
# VS Code writes it before the first cell, in kernels on other machines too.
_VSCODE_FILE = "__vsc_ipynb_file__"


class Manner(NamedTuple):
    """How a card is to be shown."""

    panel: str
    """The setting `TorchInspector.panel`."""
    live: bool = False
    """True to make it a widget where a front end can hold one."""
    answer: Answering | None = None
    """Gets what the widget asks, and gives what is told to it, if anything."""


def show_card(shell: Any, card: Card, message: dict[str, Any] | None, manner: Manner) -> RunPanel | None:
    """Publishes a card under the running cell.

    Args:
        shell: The IPython shell.
        card: What to show.
        message: The run that it is about, as `message_of` makes it; None for cards that are about none.
        manner: How.

    Returns:
        The widget that it became as well, if any.
    """
    if manner.panel == "text" or not has_front_end(shell):
        shell.display_pub.publish({"text/plain": to_text(card, width=text_width())}, {})
        return None
    widget = _widget(card, message, manner.answer) if _wants_widget(shell, message, manner) else None
    if message is None:
        bundle = to_bundle(card, {})
        bundle = {mime: bundle[mime] for mime in ("text/plain", "text/html")}
    else:
        bundle = to_bundle(card, {**message, "model_id": None if widget is None else str(widget.model_id)})
    view, metadata = _view(shell, widget, manner)
    shell.display_pub.publish({**bundle, **view}, metadata)
    return widget


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


def in_vscode(shell: Any) -> bool:
    """True in VS Code, which does not know our own type but shows widgets; without the kernel, it shows the HTML."""
    return any(name in os.environ for name in _VSCODE) or _VSCODE_FILE in getattr(shell, "user_ns", ())


def in_colab() -> bool:
    """True in Colab. It keeps the state of each widget in the file, and GitHub then refuses to show the notebook."""
    return "google.colab" in sys.modules


def text_width() -> int:
    """Columns of the terminal, at most what reads well."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _wants_widget(shell: Any, message: dict[str, Any] | None, manner: Manner) -> bool:
    if manner.panel == "widget":
        return getattr(shell, "kernel", None) is None or can_hold_widgets(shell)
    if manner.panel != "auto" or not can_hold_widgets(shell) or in_colab():
        return False
    return manner.live or (message is not None and in_vscode(shell))


def _view(shell: Any, widget: RunPanel | None, manner: Manner) -> tuple[dict[str, Any], dict[str, Any]]:
    """What shows the widget, and its metadata, where a front end would not find it by the message."""
    if widget is None or not (manner.panel == "widget" or in_vscode(shell)):
        return {}, {}
    from torch_inspector.views.widget import view_of

    return view_of(widget)


def _widget(card: Card, message: dict[str, Any] | None, answer: Answering | None) -> RunPanel | None:
    """The card as a widget; None where ipywidgets is missing."""
    try:
        from torch_inspector.views.widget import to_widget
    except ImportError:
        return None
    return to_widget(card, message, answer)


def one_line(shell: Any, text: str) -> None:
    """Publishes one line of plain text."""
    data: Mapping[str, str] = {"text/plain": text}
    shell.display_pub.publish(dict(data), {})
