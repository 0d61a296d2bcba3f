"""Rows of a table that a step did not use, and that its optimizer moves by what it remembers of earlier steps."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, StepFact, TableFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Optimizers with a running average of the gradient. Momentum and decay of the others are not known.
_AVERAGING = frozenset(("Adam", "AdamW", "NAdam", "RAdam", "Adamax"))
# The first step knows no other batch.
_STEPS = 2
# A step that may use half of a table leaves few rows idle for long.
_TIMES = 2


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds large tables under Adam of which each step looks up a part, in cells that ask for the report."""
    if not run.cell.wants_report or run.trace.count("step") < _STEPS:
        return
    steps = {key: step for step in run.trace.steps if step.optimizer_kind in _AVERAGING for key in step.parameter_keys}
    for key, tables in _tables(run).items():
        used = sum(table.used_count for table in tables)
        if key in steps and used * _TIMES <= tables[0].element_count:
            yield _finding(run, steps[key], tables[0], used)


def _tables(run: Run) -> dict[int, list[TableFact]]:
    """What the backward calls that were looked at used of each table."""
    found: dict[int, list[TableFact]] = {}
    for backward in run.trace.backwards:
        for table in backward.witness.tables if backward.witness is not None else ():
            found.setdefault(table.key, []).append(table)
    return found


def _finding(run: Run, step: StepFact, table: TableFact, used: int) -> Finding:
    name = run.parameter_path(table.key) or "a table"
    rows = max(table.shape[:1], default=1)
    used_rows = used * rows // max(table.element_count, 1)
    return Finding(
        message=(
            f"At most {used_rows:,} of the {rows:,} rows of `{name}` were used in the steps seen: {step.optimizer_kind}"
            " moves the others too, by their running averages."
        ),
        subject=name,
        fix="nn.Embedding(..., sparse=True) with torch.optim.SparseAdam moves only the rows that were looked up",
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("rows", rows, "count"),
            Evidence("rows used, at most", used_rows, "count"),
            Evidence("optimizer", step.optimizer_kind),
            Evidence("table", table.nbytes, "bytes"),
        ),
    )
