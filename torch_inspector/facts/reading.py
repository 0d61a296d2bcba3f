"""Cells that only read what a model gave, and keep its graph all the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# What is done with predictions, and not with what a loss will be made of.
_READS = re.compile(
    r"\.(detach|argmax|numpy|tolist|topk)\(|torch\.(argmax|topk)\(|\.data\b|(\.|torch\.)(max|round)\(|[<>]=? *0?\.\d"
)


def only_reads_outputs(run: Run) -> bool:
    """True if a cell trains nothing, makes numbers of outputs, and keeps outputs, none of them a loss, with history."""
    trace = run.trace
    if run.error is not None or trace.steps or trace.backwards or trace.count("step") or trace.count("backward"):
        return False
    kept = [graph for graph in run.after.graphs if graph.newest_nodes and not graph.spent]
    lines = (line.partition("#")[0] for line in run.cell.code.splitlines())
    return bool(kept) and not any(graph.scalar for graph in kept) and any(map(_READS.search, lines))
