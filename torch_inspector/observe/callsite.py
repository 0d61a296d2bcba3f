"""Calls of one kind from one line, which are only counted, and when to ask again whether they still come from there."""

from __future__ import annotations

# Calls from the only line that makes any after which one in seven is asked, and of many one after each 64th part of
# them: a second line that makes 2 % of the calls is still met. Odd: in turn with a second line, both are met.
_SURE, _ASKED, _SHARE = 64, 7, 6


class CallSite:
    """A count that wrappers write to on every call: flat, and in slots."""

    __slots__ = ("ask_at", "count", "sole")

    def __init__(self) -> None:
        self.count = 0
        self.sole = False
        """True if no other line makes such calls."""
        self.ask_at = 0
        """The number of calls from which on it is asked again which line makes them."""

    def note_lines(self, count: int) -> None:
        """Notes how many lines make such calls."""
        self.sole = count == 1
        self.ask_at = self.ask_at if self.sole else 0

    def ask_later(self) -> bool:
        """Puts the next question off, if it is sure enough that all come from here; True if so."""
        if not self.sole or self.count < _SURE:
            return False
        self.ask_at = self.count + max(_ASKED, self.count >> _SHARE | 1)
        return True
