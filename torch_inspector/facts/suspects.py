"""The logarithm or root that a loss goes through, where the call that gave NaN was not looked at itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts.edges import kept_from_edge, unkept
from torch_inspector.facts.values import OperationFact

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_LOGS = frozenset(["log", "log2", "log10"])
# Operations that have a value and no finite slope there.
_STEEP = {"sqrt": "0", "**": "0", "acos": "1 or -1", "asin": "1 or -1"}
_USUAL = "look at the batch and the weights of that step; clip gradients, lower the learning rate, check the data"


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
        return _of_weights(run)
    said = f"; it goes through `{name}` ({', '.join(places)}), and one batch that gives this a zero is enough"
    kept = kept_from_edge(run, OperationFact(name, "zeros", 0, 0))
    return Suspect(said, f"{kept[1]}; else {_USUAL}" if kept is not None and "  # " in kept[1] else _USUAL)


def _of_weights(run: Run) -> Suspect:
    """Weights that are not finite; of a gradient that is nan itself no clip and no smaller step makes a number."""
    owner = run.owner_path(frozenset(one.key for one in run.after.spoiled_weights))
    if not owner:
        return Suspect("", _USUAL)
    said, name = f", and weights of `{owner}` are not finite either", steep(run)
    return Suspect(f"{said}{suspected(run, name)}", made_again(run, name, owner)) if name else Suspect(said, _USUAL)


def steep(run: Run) -> str:
    """The only operation in the graphs that were read that has no slope at an edge, and is kept from it nowhere."""
    graphs = [one.witness for one in run.trace.backwards if one.witness is not None]
    names = {name for one in graphs for name in one.steep if name in _STEEP}
    return names.pop() if len(names) == 1 and unkept(run, min(names)) else ""


def suspected(run: Run, name: str) -> str:
    """What such an operation can do in one step while every loss is finite, as words to go on with."""
    if not name:
        return ""
    places = list(dict.fromkeys(one.place.said_in(run.cell.number) for one in unkept(run, name)))
    what = f"`{name}` ({places[0]})" if len(places) == 1 else f"`{name}`"
    return (
        f"; a batch with nan is enough, and so is one step in which {what}, which the loss goes through, is given "
        f"{_STEEP[name]}, where its slope is infinite"
    )


def made_again(run: Run, name: str, owner: str) -> str:
    """What is to be done where such an operation, if there is a name, has spoiled the weights of a model."""
    again = f"make `{owner}` again or load an earlier state; steps cannot repair it"
    kept = kept_from_edge(run, OperationFact(name, "zeros", 0, 0)) if name else None
    if kept is None:
        return again
    place, more = kept
    return f"{more}{'; ' if '  # ' in more else '  # '}{place.said_in(run.cell.number)}; then {again}"
