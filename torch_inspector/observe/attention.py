"""Which steps of a cell are looked at in full: the first ones, and some whenever something new happens."""

from __future__ import annotations

# Steps looked at from the start of a cell: enough for several windows of gradient accumulation.
_FIRST_STEPS = 16
# Steps looked at again when a module is called in another mode, backward from another line, and at every fourfold.
_IN_A_ROW = 3
_FOURFOLD = 4
# Backward calls looked at without any optimizer step, as in hand-written updates.
_BACKWARDS = 64


class Attention:
    """Read by the wrappers on every call: while it is not busy, they only count.

    One object for the whole session, flat and in slots, because the wrappers hold it.
    """

    __slots__ = ("_backwards_left", "_next_look", "_until", "busy", "looking", "quiet_steps", "step_count", "watching")

    def __init__(self) -> None:
        self.watching = False
        """True while a cell is recorded."""
        self.begin()
        self.watching = False

    def begin(self) -> None:
        """A cell begins: everything in it is new."""
        self.watching = True
        self.busy = True
        """True if a wrapper has more to do than to count."""
        self.looking = True
        """True if the gradients of the step that is being made are followed."""
        self.quiet_steps = 0
        """Steps that are only counted from now on; none while busy."""
        self.step_count = 0
        self._until = _FIRST_STEPS
        self._next_look = _FIRST_STEPS * _FOURFOLD
        self._backwards_left = _BACKWARDS

    def again(self) -> None:
        """Something new has happened: the next steps are looked at."""
        self._until = max(self._until, self.step_count + 1 + _IN_A_ROW)
        self._backwards_left = _BACKWARDS
        self.busy, self.quiet_steps = True, 0

    def after_backward(self) -> None:
        """A backward call was looked at; without steps that ends after a while."""
        self._backwards_left -= 1
        if self._backwards_left <= 0:
            self.busy = self.looking = False

    def after_step(self) -> bool:
        """Counts a step; True if the next one is looked at."""
        self.step_count += 1
        if self.step_count >= self._next_look:
            self._next_look *= _FOURFOLD
            self.again()
        looked = self.step_count < self._until
        if looked:
            self._backwards_left = _BACKWARDS
        return looked

    def rest(self) -> None:
        """Nothing is to be looked at before the next fourfold, unless something new happens."""
        self.busy = False
        self.quiet_steps = self._next_look - self.step_count - 1
        self.step_count = self._next_look - 1
