"""`backward(retain_graph=True)` on a graph that reaches back over all earlier steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from torch_inspector.facts import BackwardFact, GraphFact, Place, Run
from torch_inspector.facts.detaching import carried_states, detached
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Truncated backpropagation over a window of steps grows at first; fewer calls say nothing.
_FEWEST = 8
# Windows are seldom that long: a graph that still grows here grows for good.
_FOR_GOOD = 32
# With each step kept, the graph grows by the same amount; half of it leaves room for steps that differ.
_STEADY_RATIO = 0.5
# So many windows of kept steps are told of by the variable that keeps them, see `graph_retained_in_list`.
_TOLD_STEPS = 16


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds lines whose kept graphs were larger each time that one of them was looked at."""
    if not run.trace.retains:
        return
    calls: dict[Place, list[BackwardFact]] = {}
    for backward in run.trace.backwards:
        if not backward.is_grad_call:
            calls.setdefault(backward.place, []).append(backward)
    for place, seen in calls.items():
        sizes = _sizes(seen)
        if _grows(sizes) and sizes[-1][2] >= run.min_nbytes and not _is_told(run):
            yield _finding(run, place, seen[-1], sizes)


def _sizes(seen: list[BackwardFact]) -> list[tuple[int, int, int]]:
    """Index, nodes and bytes of each call; empty if one did not keep its graph or was not seen whole."""
    looked = [(b.index, b.witness) for b in seen if b.retain_graph and b.witness is not None and b.witness.complete]
    whole = len(looked) == len(seen)
    return [(index, witness.node_count, witness.saved_nbytes) for index, witness in looked] if whole else []


def _grows(sizes: list[tuple[int, int, int]]) -> bool:
    if len(sizes) <= 2 or sizes[-1][0] < _FEWEST or sizes[0][0] != 1:  # noqa: PLR2004  (a rate needs three)
        return False
    first, second = sizes[0], sizes[1]
    each = (second[1] - first[1]) / max(second[0] - first[0], 1)
    return each > 0 and all(
        new[0] > old[0] and new[2] > old[2] and new[1] - old[1] >= _STEADY_RATIO * each * (new[0] - old[0])
        for old, new in pairwise(sizes)
    )


def _is_told(run: Run) -> bool:
    """True if the variable that carries the graph is left after the cell and reported itself, with its own line."""
    return any(
        _is_carried(graph)
        and not graph.spent
        and graph.step_count >= _TOLD_STEPS
        and graph.saved_nbytes >= max(run.min_nbytes, 1)
        for graph in run.after.graphs
    )


def _is_carried(graph: GraphFact) -> bool:
    named = graph.grown_by in ("named", "display")
    return bool(graph.newest_nodes) and graph.differentiated and not graph.scalar and not named


def _carriers(run: Run) -> list[GraphFact]:
    """What hands the graph on, rather than what is made of that in each step; any of these if no line tells."""
    graphs = [graph for graph in run.after.graphs if _is_carried(graph) and graph.detached]
    own = [graph for graph in carried_states(run) if graph in graphs]
    paths = {graph.path for graph in graphs}
    return own or [graph for graph in graphs if graph.derived_from not in paths][:1]


def _finding(run: Run, place: Place, last: BackwardFact, sizes: list[tuple[int, int, int]]) -> Finding:
    root = last.root or "loss"
    carriers = _carriers(run)
    index, nodes, nbytes = sizes[-1]
    return Finding(
        message=(
            f"`{root}.backward(retain_graph=True)` went back through all steps before: its graph had {sizes[0][1]} "
            f"nodes at the first call, {nodes} at call {index}, and then held {size_text(nbytes)}."
        ),
        subject=root,
        fix=(
            f"{detached(run, carriers)}  # at the end of each step; then {root}.backward() needs no retain_graph"
            if carriers
            else f"call .detach() on what goes on to the next step; then {root}.backward() needs no retain_graph"
        ),
        line=place.line,
        cell=place.cell,
        severity="" if index >= _FOR_GOOD else "hint",
        evidence=(
            Evidence("calls from this line", run.trace.count("backward", place) or index, "count"),
            *(Evidence(f"graph nodes at call {number}", count, "count") for number, count, _ in sizes),
            Evidence(f"kept for backward at call {index}", nbytes, "bytes"),
        ),
    )
