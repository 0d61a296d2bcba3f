"""Which steps of a cell are looked at in full: the first ones, and some whenever something new happens."""

from __future__ import annotations

from torch_inspector.observe import others
from torch_inspector.observe.recorder import NOWHERE, Site

# Steps looked at from the start of a cell: a mistake may show twice in a row, also of two optimizers in turn.
_FIRST_STEPS, _FIRST_OF_SEVERAL = 4, 6
# Steps looked at again when a module is called in another mode, backward from another line, and at the 128th and every
# 32-fold of it.
_IN_A_ROW = 2
_LATER, _MANIFOLD = 128, 32
# Backward calls looked at without any optimizer step, as in hand-written updates.
_BACKWARDS = 64
# Graphs that are read for a model that is new in the cell, and how many models; a loop that makes one in each turn has
# no end of them.
_GRAPHS, _MODELS = 2, 16


class Attention:
    """Read by the wrappers on every call: while it is not busy, they only count.

    One object for the whole session, flat and in slots, because the wrappers hold it.
    """

    __slots__ = (
        "_backwards_left",
        "_models_left",
        "_next_look",
        "_until",
        "busy",
        "foreign",
        "graphs_wanted",
        "latest_backward",
        "latest_clear",
        "latest_step",
        "looking",
        "quiet_steps",
        "step_count",
        "thread",
        "watching",
    )

    def __init__(self) -> None:
        self.foreign = False
        """True if other threads train: their gradients are written without the GIL and must not be read."""
        self.begin(0)
        self.end()

    def begin(self, thread: int) -> None:
        """A cell begins in this thread: everything in it is new."""
        self.thread = thread
        self.watching = True
        """True while a cell is recorded."""
        self.busy = True
        """True if a wrapper has more to do than to count."""
        self.foreign = others.may_train()
        self.looking = not self.foreign
        """True if the gradients of the step that is being made are followed."""
        self.graphs_wanted = 0
        """Backward calls whose graph is to be read although their line is known."""
        self.quiet_steps = 0
        """Steps that are only counted from now on; none while busy."""
        self._forget()
        self.step_count = 0
        self._until = _FIRST_STEPS
        self._next_look = _LATER
        self._backwards_left = _BACKWARDS
        self._models_left = _MODELS

    def end(self) -> None:
        """Nothing is recorded any more."""
        self.watching = False
        self._forget()

    def _forget(self) -> None:
        """Where the latest calls came from that were only counted: nowhere while nothing is only counted."""
        self.latest_backward: Site = NOWHERE
        self.latest_clear: Site = NOWHERE
        self.latest_step: Site = NOWHERE

    def again(self) -> None:
        """Something new has happened: the next steps are looked at."""
        self._until = max(self._until, self.step_count + 1 + _IN_A_ROW)
        self._backwards_left = _BACKWARDS
        self.busy, self.quiet_steps = True, 0
        self._forget()

    def look_into_graphs(self) -> None:
        """A model is called for the first time: the graphs of its first losses are read, whichever line makes them."""
        if self._models_left > 0:
            self._models_left -= 1
            self.graphs_wanted = _GRAPHS

    def in_other_thread(self) -> None:
        """Another thread trains while the cell runs: gradients are not followed any more."""
        self.foreign, self.looking = True, False

    def after_backward(self) -> None:
        """A backward call was looked at; without steps that ends after a while."""
        self._backwards_left -= 1
        if self._backwards_left <= 0:
            self.busy = self.looking = False

    def after_step(self, *, several: bool) -> bool:
        """Counts a step, of several optimizers in turn or of one; True if the next one is looked at."""
        self.step_count += 1
        if several:
            self._until = max(self._until, _FIRST_OF_SEVERAL)
        if self.step_count >= self._next_look:
            self._next_look *= _MANIFOLD
            self.again()
        looked = self.step_count < self._until and not self.foreign
        if looked:
            self._backwards_left = _BACKWARDS
        return looked

    def rest(self) -> None:
        """Nothing is to be looked at before the next of these steps, unless something new happens."""
        self.busy = False
        self.quiet_steps = self._next_look - self.step_count - 1
        self.step_count = self._next_look - 1
