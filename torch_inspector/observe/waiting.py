"""Results with history of passes in eval mode: does a backward call reach them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.observe.calls import Calls

# Backward calls that go elsewhere until a result counts as not reached. Heads of one backbone that send their losses
# back one by one come before the backbone's own backward call, so that is final only when the line is called again.
_ENOUGH = 3
# Those after which waiting ends in any case: each costs a walk of a graph.
_MOST = 16


class Waiting:
    """One such result, known by the numbers of the nodes made during the call."""

    __slots__ = ("calls", "complete", "first", "last", "misses")

    def __init__(self, calls: Calls, first: int, last: int) -> None:
        self.calls = calls
        self.first = first
        self.last = last
        self.misses = 0
        self.complete = True

    def note(self, numbers: frozenset[int], *, complete: bool) -> bool:
        """Takes in which nodes a backward call has gone through; True if waiting is over."""
        if any(self.first <= number < self.last for number in numbers):
            self.calls.reached = True
            return True
        self.misses += 1
        self.complete &= complete
        return self.misses >= _MOST

    def settle(self) -> bool:
        """Concludes that nothing came, if that was long enough; True if so."""
        if self.misses < _ENOUGH:
            return False
        if self.complete and self.calls.reached is None:
            self.calls.reached = False
        return True
