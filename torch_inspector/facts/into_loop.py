"""What keeps the graph of a variable from being gone through at each turn of a loop that it was made before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.errors import NamedFact, RefusalFact
    from torch_inspector.facts.graphs import BackwardFact
    from torch_inspector.facts.made_together import Made
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


def into_loop(run: Run, refusal: RefusalFact, every: Made, made: Place, before: BackwardFact | None) -> str:
    """The line of a variable, moved into the loop, with those of what it is made of; or the variable detached.

    Args:
        run: The cell.
        refusal: The error, with the variables from before the loop.
        every: The newest of them, and what its line makes beside it.
        made: That line.
        before: The call that freed the graph.
    """
    older = [one for one in refusal.olds[1:] if one.path not in every.names]
    if not older:
        return f"{every.text}  # line {made.line}, moved into the loop; or {every.detached()} if it is not trained"
    off = "; ".join(f"{one} = {one}.detach()" for one in every.names)
    lines = " and ".join((*(_said(one, made) for one in reversed(older)), f"line {made.line}"))
    if _is_trained(run, before):
        return f"{every.text}  # {lines}, all moved into the loop; or {every.detached()} if it is not trained"
    return f"{off}  # behind line {made.line}; or, if it is to be trained: {lines}, all moved into the loop"


def _said(one: NamedFact, here: Place) -> str:
    """Where an older variable is made, and which."""
    place = one.made_at
    where = f" ({place.said_in(here.cell).removeprefix('in ')})" if place is not None and place.line else ""
    return f"{one.path} = ...{where}"


def _is_trained(run: Run, before: BackwardFact | None) -> bool:
    """True if the optimizers step all that the call has reached: then what the variable is made of is trained."""
    reached = before.witness.leaf_keys if before is not None and before.witness is not None else frozenset[int]()
    return bool(reached) and reached <= frozenset[int]().union(*(one.parameter_keys for one in run.trace.steps))
