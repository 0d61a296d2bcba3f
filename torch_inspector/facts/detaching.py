"""How the code of a step lets go of a history that its variables keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_inspector.facts.reading import line_at, seen_from

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import GraphFact
    from torch_inspector.facts.run import Run

EACH_STEP = "at the end of each step"


def correction(run: Run, graph: GraphFact) -> str:
    """The line that grows, changed, or what to do where it does not say how it would read."""
    if _is_cleared(graph) or _is_state(graph):
        return _advice(run, graph)
    return _remedy(graph) or _advice(run, graph)


def carried_states(run: Run) -> list[GraphFact]:
    """Variables that hand a history on to the next step: made of themselves, or fields of objects.

    A field outlives the step that gave it a value: the next one may read it, as `self.last_read` in `forward`.
    """
    roots = {backward.root for backward in run.trace.backwards}
    graphs = (one for one in run.after.graphs if one.newest_nodes and one.differentiated and not one.spent)
    own = [one for one in graphs if one.detached and one.path not in roots]
    return [one for one in own if one.grown_by == "carried" or (not one.scalar and _is_sum_or_field(one))]


def _is_sum_or_field(graph: GraphFact) -> bool:
    return graph.grown_by == "sum" or ("." in graph.path and graph.grown_by == "assigned" and not graph.container)


def detached(run: Run, states: list[GraphFact]) -> str:
    """The statements that take their history from states, as the code of the step names them."""
    return "\n".join(one._replace(path=_named_in_step(run, one)).detached for one in states)


def _named_in_step(run: Run, graph: GraphFact) -> str:
    """What the code that goes backward calls it: `self.h`, if that is in the class whose method makes it grow."""
    place, own = graph.grown_at, f"self.{graph.path.rpartition('.')[2]}"
    steps = [one.place for one in run.trace.backwards if not one.is_grad_call]
    if place is None or not steps or "." not in graph.path or own not in line_at(run, place):
        return graph.path
    return own if all(seen_from(run, own, place, one) for one in steps) else graph.path


def _advice(run: Run, graph: GraphFact) -> str:
    if _is_cleared(graph):
        return f"{graph.path}.clear()  # after each update: a loss is made of what it holds"
    read = ".item()" if graph.scalar and graph.as_number else ".detach()"
    if not graph.container:
        when = EACH_STEP if graph.differentiated else "unless a later cell calls backward() on it"
        name = _named_in_step(run, graph)
        return f"{name} = {name}{read}  # {when}"
    if _is_state(graph):
        return f"{detached(run, [graph])}  # {EACH_STEP}"
    each = "each loss" if graph.scalar and graph.differentiated else "each"
    unless = "" if graph.differentiated else "  # unless a later cell calls backward() on them"
    return f"call {read} on {each} before it goes into {graph.path}{unless}"


def _remedy(graph: GraphFact) -> str:
    """The line without history; a total that no backward call has read may be meant for one."""
    meant = graph.grown_by == "sum" and graph.remedy and not graph.differentiated and graph.scalar
    return f"{graph.remedy}  # unless a later cell calls backward() on it" if meant else graph.remedy


def _is_cleared(graph: GraphFact) -> bool:
    """True for what a loss is made of, which is done with after that."""
    return graph.feeds_loss and graph.container


def _is_state(graph: GraphFact) -> bool:
    """True for what steps hand on: taken out of its own line, the history of this step would be lost as well."""
    kinds = ("carried",) if graph.container else ("sum", "carried")
    return graph.grown_by in kinds and graph.differentiated and not graph.scalar and bool(graph.detached)
