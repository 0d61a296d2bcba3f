"""Gradients of earlier steps are still in `.grad` at the next step."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, StepFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One step on top of an old gradient can be meant (a warm start); two in a row are a loop without clearing.
_IN_A_ROW = 2


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers which step twice in a row on gradients that were never cleared."""
    for key, steps in run.steps_by_optimizer().items():
        if not any(step.kept_gradients for step in steps):
            continue
        earlier = [s for past in run.earlier for s in past.trace.steps if s.optimizer == key]
        row = _last_row(earlier, steps)
        if len(row) >= _IN_A_ROW:
            yield _finding(run, key, row, steps)


def _last_row(earlier: list[StepFact], steps: list[StepFact]) -> list[StepFact]:
    """The longest stretch of steps on kept gradients that ends in this cell."""
    best: list[StepFact] = []
    row: list[StepFact] = []
    for step in earlier:
        row = [*row, step] if step.kept_gradients else []
    for step in steps:
        row = [*row, step] if step.kept_gradients else []
        best = row if len(row) >= len(best) and row else best
    return best


def _finding(run: Run, key: int, row: list[StepFact], steps: list[StepFact]) -> Finding:
    name = run.optimizer_path(key) or "optimizer"
    place = row[-1].place
    total = run.trace.count("step", place)
    every = all(step.kept_gradients for step in steps[1:]) and len(steps) > 1
    how_often = f"all {total} steps" if every else f"{len(row)} steps in a row"
    return Finding(
        message=(
            f"`{name}.step()` ran without the gradients being cleared in between ({how_often}): "
            "each step followed the sum of all gradients so far."
        ),
        subject=name,
        fix=f"{name}.zero_grad()  # once per step, before backward()",
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("optimizer", f"{name} ({row[-1].optimizer_kind})"),
            Evidence("steps in this cell", total, "count"),
            Evidence("steps on kept gradients, of those looked at", len(row), "count"),
            Evidence("parameters", row[-1].parameter_count, "count"),
        ),
    )
