"""What a user has set in the sidebar about the feed: whether and how often it looks, how much it keeps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from torch_inspector.notebook.feed.cadence import QUICK_S
from torch_inspector.notebook.feed.timeline import MOST

# Four looks a second cost half a percent of a core; below one in ten seconds the chart says nothing any more.
_SHORTEST_S, _LONGEST_S = 0.25, 10.0
_FEWEST = 100


class Wishes(NamedTuple):
    """The settings of the sidebar that the kernel has to know."""

    sampling: bool = True
    """False for no looks at memory at all; cells, steps and findings are told all the same."""
    interval_s: float = QUICK_S
    """Seconds between two looks in a young cell."""
    findings: bool = True
    """False if the running cell is not to be judged before it has ended."""
    history: int = MOST
    """Looks that are kept."""


def read_wishes(data: dict[str, Any]) -> Wishes | None:
    """What a request says, within bounds; None if it does not say it in the right form."""
    sampling, findings = data.get("sampling"), data.get("findings")
    interval_s, history = data.get("interval_s"), data.get("history")
    if type(sampling) is not bool or type(findings) is not bool or type(history) is not int:
        return None
    if type(interval_s) is not int and type(interval_s) is not float:
        return None
    bounded = min(max(interval_s, _SHORTEST_S), _LONGEST_S)
    if math.isnan(bounded):
        return None
    return Wishes(sampling, bounded, findings, min(max(history, _FEWEST), MOST))
