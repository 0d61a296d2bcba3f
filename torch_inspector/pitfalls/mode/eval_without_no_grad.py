"""Evaluation that still records the graph."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Below this the graph of one output is not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds calls in eval mode whose result carries a graph that no backward call reached."""
    for call in run.trace.forwards:
        if _records_for_nothing(call, run) and call.graph_nbytes >= max(run.min_nbytes, 1):
            yield _finding(run, call)


def _records_for_nothing(call: ForwardFact, run: Run) -> bool:
    if call.training or not call.grad_enabled or not call.output_requires_grad or call.input_requires_grad:
        return False
    differentiated = run.trace.count("backward") + run.trace.count("grad")
    return call.reached is False or (call.reached is None and not differentiated)


def _finding(run: Run, call: ForwardFact) -> Finding:
    name = run.module_path(call.module) or call.kind
    kept = [graph.path for graph in run.after.graphs if graph.newest_nodes and not graph.spent]
    megabytes = call.graph_nbytes / 2**20
    held = f"; {', '.join(f'`{path}`' for path in kept[:3])} still holds it" if kept else ""
    return Finding(
        message=(
            f"`{name}` recorded a graph of {megabytes:.1f} MB per call in eval mode, "
            f"and no backward call used it{held}."
        ),
        subject=kept[0] if kept else name,
        fix=f"with torch.no_grad():\n    {kept[0] if kept else 'output'} = {name}(...)",
        line=call.place.line,
        cell=call.place.cell,
        severity="" if call.graph_nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("kept for backward per call", call.graph_nbytes, "bytes"),
            Evidence("calls from this line", call.count, "count"),
            *(Evidence("held by", path) for path in kept[:3]),
        ),
    )
