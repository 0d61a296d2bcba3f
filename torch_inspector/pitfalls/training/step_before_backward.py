"""The step is taken between the forward pass and the backward call that belongs to it."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, StepFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# A second pass in the wrong order shows that it is how the loop is built.
_AGAIN = 2


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers that step after a loss was computed and before its backward call, from the first step on."""
    for key, steps in run.steps_by_optimizer().items():
        if not run.trace.steps_come_first(key):
            continue
        late = [one for one in run.trace.backwards if key in one.stale]
        if len(late) >= _AGAIN or run.error is not None or (len(steps) == 1 and steps[0].idle):
            yield _finding(run, key, steps, late)


def _finding(run: Run, key: int, steps: list[StepFact], late: list[BackwardFact]) -> Finding:
    name, step, loss = run.optimizer_path(key) or "optimizer", steps[0], late[0].root or "loss"
    idle = [one for one in steps if one.idle]
    return Finding(
        message=(
            f"`{name}.step()` runs after `{loss}` was computed and before `{loss}.backward()`: {_effect(steps, idle)}."
        ),
        subject=name,
        fix=f"{loss}.backward()\n{run.optimizer_name_at(key, step.place) or name}.step()  # in this order",
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("step at line", step.place.line or 0),
            Evidence("backward at line", late[0].place.line or 0),
            Evidence("steps in this cell", run.trace.count("step", step.place), "count"),
            Evidence("steps without any gradient, of those looked at", len(idle), "count"),
        ),
    )


def _effect(steps: list[StepFact], idle: list[StepFact]) -> str:
    if len(idle) == len(steps):
        return "no step found a gradient, and no weight has changed"
    first = "the first step found no gradient, and each later one" if idle else "each step"
    return f"{first} follows the loss of the round before"
