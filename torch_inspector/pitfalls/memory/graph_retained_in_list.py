"""Tensors with history collected in a list, or added up with their history."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import GraphFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Fewer can be the parts of one step (losses of several heads).
_COLLECTED = 3
# Below this, activations are not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds collections and running totals that keep the graphs of many steps after the cell."""
    before = {graph.path: graph for graph in run.before.graphs}
    for graph in run.after.graphs:
        old = before.get(graph.path)
        grew = graph.newest_nodes and (old is None or old.key != graph.key)
        if grew and (graph.container or graph.sum_length >= _COLLECTED):
            yield from _judge(run, graph)


def _judge(run: Run, graph: GraphFact) -> Iterator[Finding]:
    many = graph.sum_length if not graph.container else graph.tensor_count
    if many < _COLLECTED:
        return
    if graph.spent:
        if graph.differentiated:
            yield _finding(graph, _nodes_only(graph, many), severity_is_hint=True)
    elif graph.saved_nbytes + graph.nbytes >= max(run.min_nbytes, 1) and not _is_differentiated(run, graph):
        small = graph.saved_nbytes + graph.nbytes < _LARGE_NBYTES
        yield _finding(graph, _activations(graph, many), severity_is_hint=small)


def _is_differentiated(run: Run, graph: GraphFact) -> bool:
    """True if backward was called on the variable itself: a total loss, kept with `retain_graph`."""
    return any(backward.root == graph.path for backward in run.trace.backwards)


def _activations(graph: GraphFact, many: int) -> str:
    size = (graph.saved_nbytes + graph.nbytes) / 2**20
    at_least = "" if graph.complete else "at least "
    what = f"{many} tensors with their history" if graph.container else f"the history of {many} additions"
    return f"`{graph.path}` keeps {what}: {at_least}{size:.1f} MB of activations wait for a backward call."


def _nodes_only(graph: GraphFact, many: int) -> str:
    at_least = "" if graph.complete else "at least "
    what = f"{many} losses" if graph.container else f"the sum of {many} losses"
    return (
        f"`{graph.path}` keeps {what} with their history: {at_least}{graph.node_count} graph nodes stay alive "
        "(the activations are freed, backward has run)."
    )


def _finding(graph: GraphFact, message: str, *, severity_is_hint: bool) -> Finding:
    place = graph.grown_at
    read = "item" if graph.scalar else "detach"
    fix = f"{graph.path}.append(loss.{read}())" if graph.container else f"{graph.path} += loss.item()"
    return Finding(
        message=message,
        subject=graph.path,
        fix=fix if graph.scalar else f"{graph.path}.append(output.detach())",
        line=place.line if place else None,
        cell=place.cell if place else None,
        severity="hint" if severity_is_hint else "",
        evidence=(
            Evidence("tensors with history", graph.tensor_count, "count"),
            Evidence("graph nodes", graph.node_count, "count"),
            Evidence("activations kept for backward", graph.saved_nbytes, "bytes"),
            Evidence("the tensors themselves", graph.nbytes, "bytes"),
        ),
    )
