"""The logarithm that a loss goes through, where the call that gave NaN was not looked at itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts.edges import kept_from_edge, unkept
from torch_inspector.facts.values import OperationFact

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_LOGS = frozenset(["log", "log2", "log10"])


class Suspect(NamedTuple):
    """What may be to blame."""

    said: str
    """Words to go on with; empty where there is none."""
    fix: str


def suspect(run: Run) -> Suspect:
    """The only such operation in the graphs that were read of whose operand nothing keeps zeros away."""
    graphs = (one.witness for one in run.trace.backwards if one.witness is not None)
    names = {name for one in graphs for name in one.steep if name in _LOGS}
    name = names.pop() if len(names) == 1 else ""
    places = dict.fromkeys(one.place.said_in(run.cell.number) for one in unkept(run, name)) if name else {}
    if not places:
        return Suspect("", "")
    said = f"; it goes through `{name}` ({', '.join(places)}), and one batch that gives this a zero is enough"
    kept = kept_from_edge(run, OperationFact(name, "zeros", 0, 0))
    return Suspect(said, f"{kept[1]}; else " if kept is not None and "  # " in kept[1] else "")
