"""A step changed weights that a loss computed before it still needs for its backward call."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, StepFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_CHANGED = "modified by an inplace operation"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Explains a backward call that failed because an optimizer has stepped since its loss was computed."""
    if run.error is None or _CHANGED not in run.error.message or not run.trace.backwards:
        return
    failed = max(run.trace.backwards, key=lambda one: one.order)
    for key in failed.stale:
        steps = [step for step in run.trace.steps if step.optimizer == key and step.order < failed.order]
        if steps and not run.trace.steps_come_first(key):
            yield _finding(run, key, steps[-1], failed)
            return


def _finding(run: Run, key: int, step: StepFact, failed: BackwardFact) -> Finding:
    name, loss = run.optimizer_path(key) or "optimizer", failed.root or "loss"
    leaves = failed.leaf_keys
    changed = len(step.parameter_keys & leaves)
    return Finding(
        message=(
            f"`{loss}` was computed before `{name}.step()`, which has changed {changed} of the parameters that it goes "
            f"back through: `{loss}.backward()` needs their old values."
        ),
        subject=loss,
        fix=_fix(f"compute {loss} again after {name}.step(), from a new call of the model", run, step, failed),
        line=failed.place.line,
        cell=failed.place.cell,
        evidence=(
            Evidence("loss computed at line", failed.made_at.line or 0),
            Evidence("step at line", step.place.line or 0),
            Evidence("backward at line", failed.place.line or 0),
            Evidence("parameters changed in between", changed, "count"),
        ),
    )


def _fix(fix: str, run: Run, step: StepFact, failed: BackwardFact) -> str:
    """A backward call may come before the step as well, where the gradient of this loss is meant for it."""
    leaves = failed.leaf_keys
    # What another optimizer is to learn from this loss; before the step it would be mixed into the gradients of this.
    others = (one.parameter_keys - step.parameter_keys for one in run.after.optimizers if one.key != step.optimizer)
    made, stepped, called = failed.made_at, step.place, failed.place
    in_order = made.cell == stepped.cell == called.cell and (made.line or 0) < (stepped.line or 0) < (called.line or 0)
    if not in_order or any(held & leaves for held in others) or not leaves <= step.parameter_keys:
        return fix
    return f"{failed.root or 'loss'}.backward()  # before {step.name or 'optimizer'}.step(); or {fix}"
