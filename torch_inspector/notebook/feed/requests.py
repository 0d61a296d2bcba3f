"""What the sidebar may ask for: the feed itself, and what `answers.py` answers. None of the data is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.wishes import read_wishes

if TYPE_CHECKING:
    from torch_inspector.notebook.feed.answers import Answers
    from torch_inspector.notebook.feed.feed import Feed


class Requests:
    """Answers requests through the feed.

    Args:
        feed: Takes the answers.
        answers: Makes those that are not about the feed.
    """

    def __init__(self, feed: Feed, answers: Answers) -> None:
        self._feed = feed
        self._answers = answers

    def take(self, data: Any) -> None:
        """One request; what is not understood gets no answer."""
        if type(data) is not dict or data.get("v") != messages.VERSION:
            return
        if data.get("ask") == "hello":
            self._feed.greet()
        elif data.get("ask") == "settings":
            self._settings(data)
        else:
            for op, fields in self._answers.to(data):
                self._feed.answer(op, **fields)

    def _settings(self, data: Any) -> None:
        wishes = read_wishes(data)
        if wishes is not None:
            self._feed.wish(wishes)
