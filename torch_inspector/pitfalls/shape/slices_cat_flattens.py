"""Columns that were joined one after the other instead of side by side."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds `torch.cat` of single columns of one matrix."""
    for fact in run.expressions("columns"):
        if len(fact.names) > 1 and fact.shapes:
            yield _finding(fact)


def _finding(fact: ExpressionFact) -> Finding:
    name, part = fact.names[:2]
    rows = fact.shapes[0][0] if fact.shapes[0] else 0
    return Finding(
        message=(
            f"`torch.cat` puts columns of `{name}` {fact.shapes[0]} one after the other: `{part}` has shape ({rows},), "
            f"so the result is one row of numbers, not a matrix of {rows} rows."
        ),
        subject=fact.target or name,
        fix=f"torch.stack([…], dim=-1)  # {rows} rows again; or index once: {name}[:, columns]",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence(name, str(fact.shapes[0])), Evidence(part, f"({rows},)")),
    )
