"""What the wrappers of one cell share: the order of events, lines with their counts, the time left."""

from __future__ import annotations

import threading
from time import monotonic
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from torch_inspector.facts import CountFact, Place
from torch_inspector.observe.callsite import CallSite

if TYPE_CHECKING:
    from torch_inspector.failures import Failures
    from torch_inspector.observe.budget import Budget
    from torch_inspector.observe.carried import Known
    from torch_inspector.observe.keys import Keys
    from torch_inspector.observe.place import Places


class Site(CallSite):
    """One line (more exactly, one call in it) from which one kind of call is made."""

    __slots__ = ("code", "growing", "kind", "known_as", "known_outside", "lasti", "name", "owner", "place", "steep")

    def __init__(self, kind: str, place: Place, name: str = "", owner: int = 0) -> None:
        super().__init__()
        self.kind = kind
        self.place = place
        self.name = name
        self.known_as = ""
        """What the code there calls the optimizer."""
        self.known_outside = ""
        """What the notebook calls it where that is another name."""
        self.growing = 0
        """Nodes of the last graph of a backward call there, while each is kept and larger than the one before."""
        self.steep = False
        """True if a graph of a backward call there holds operations that have no finite slope at some numbers."""
        self.owner = owner
        # Held so that its address, which is part of the site's key, is not used again.
        self.code: CodeType | None = None
        self.lasti = -1


# Parts that follow the gradients of optimizers from event to event: what comes after one that was missed is a guess.
_FOLLOWING = ("optimizer", "backward", "zero_grad", "clip", "step", "scaler")

NOWHERE = Site("", Place())
"""Stands where no site is known yet; no call is made from it."""


class Recorder:
    """State of one cell that the wrappers write to.

    After the first calls from a line a wrapper only counts, so everything here is made for that path.
    """

    def __init__(self, places: Places, keys: Keys, budget: Budget, failures: Failures) -> None:
        self.places = places
        self.keys = keys
        self.budget = budget
        self.failures = failures
        self._failed = self._failed_so_far()
        self.thread = threading.get_ident()
        self.wants_report = False
        """True under `%%torchcheck`: a look may then take its time."""
        self.order = 0
        self._began = monotonic()
        self.sites: dict[tuple[str, int, int, int], Site] = {}
        self.plain_graphs: dict[tuple[int, int], tuple[object, ...]] = {}
        """For each line that calls backward, what the last graph there was made of, if nothing was found in it."""

        self.leaf_values: Known = {}
        """Some values of leaves that no optimizer holds, when a backward call began."""

    def _failed_so_far(self) -> list[int]:
        return [self.failures.counts.get(part, 0) for part in _FOLLOWING]

    def is_whole(self) -> bool:
        """True if no event in the life of a gradient was missed in this cell because something of ours failed."""
        return self._failed_so_far() == self._failed

    def elapsed_s(self) -> float:
        """Seconds since the cell began."""
        return monotonic() - self._began

    def next_order(self) -> int:
        """Position of the next fact among all facts of the cell."""
        self.order += 1
        return self.order

    def site(self, kind: str, frame: FrameType, name: str = "", owner: int = 0) -> Site:
        """The site of a call made by `frame`, counted once more; `owner` tells apart calls that share a wrapper."""
        code = frame.f_code
        key = (kind, id(code), frame.f_lasti, owner)
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = Site(kind, self.places.find(frame), name, owner)
            site.code, site.lasti = code, frame.f_lasti
        site.count += 1
        return site

    def counts(self) -> tuple[CountFact, ...]:
        """How often each kind of call was made from each line."""
        totals: dict[tuple[str, Place, str], int] = {}
        for site in tuple(self.sites.values()):
            key = (site.kind, site.place, site.name)
            totals[key] = totals.get(key, 0) + site.count
        return tuple(CountFact(kind, place, name, count) for (kind, place, name), count in totals.items())
