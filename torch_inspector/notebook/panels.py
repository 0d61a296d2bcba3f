"""The widgets under the cells, and those that the user has placed elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_inspector.views.card import Card

if TYPE_CHECKING:
    from torch_inspector.facts import Cell
    from torch_inspector.views.widget import Answering, RunPanel

_NONE_YET = Card("torch_inspector: nothing to show yet", "calm", ())


class Panels:
    """Ends the widget of a cell that has run again, whose output is gone: ipywidgets keeps all of them until then.

    Args:
        answer: Answers the widgets.
    """

    def __init__(self, answer: Answering) -> None:
        self._answer = answer
        self._of: dict[str, RunPanel] = {}
        self._latest: tuple[Card, dict[str, Any]] = (_NONE_YET, {})
        self._following: list[RunPanel] = []

    def end(self, cell: Cell) -> None:
        """Ends what stood under a cell before this run of it."""
        panel = self._of.pop(cell.id, None) if cell.id else None
        if panel is not None:
            panel.close()

    def shown(self, cell: Cell, panel: RunPanel | None, card: Card, message: dict[str, Any]) -> None:
        """Takes note of what a cell has got; one without an id may be another cell with the same text."""
        if panel is not None and cell.id:
            self._of[cell.id] = panel
        self._latest = (card, message)
        self._following = [one for one in self._following if one.comm is not None]
        for one in self._following:
            one.show(card, message)

    def follow(self) -> RunPanel:
        """A new widget that shows the latest card, and each one to come.

        Raises:
            ImportError: anywidget is not installed.
        """
        from torch_inspector.views.widget import to_widget

        panel = to_widget(*self._latest, self._answer)
        self._following.append(panel)
        return panel
