"""The step is taken between the forward pass and the backward call that belongs to it."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, StepFact
from torch_inspector.facts.calling import call_that_led_to
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
    elsewhere = late[0].place.scope != step.place.scope and loss.startswith("self.")
    return Finding(
        message=(
            f"`{name}.step()` runs after {_begun(run, step, late[0], loss)} and before `{loss}.backward()`"
            f"{f' in `{late[0].place.function}`' if elsewhere else ''}: "
            f"{_effect(steps, idle)}."
        ),
        subject=name,
        fix=f"{_in_order(run, key, step, late[0], loss)}  # in this order",
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("step at line", step.place.line or 0),
            Evidence("backward at line", late[0].place.line or 0),
            Evidence("steps in this cell", run.trace.count("step", step.place), "count"),
            Evidence("steps without any gradient, of those looked at", len(idle), "count"),
        ),
    )


def _in_order(run: Run, key: int, step: StepFact, late: BackwardFact, loss: str) -> str:
    """The two as the function calls them that has both, or calls the one in which the other stands."""
    called = call_that_led_to(run, late.place, step.place)
    # Of a function called `step` the call looks like that of a schedule.
    told = not called and step.place.function.rpartition(".")[2] != "step"
    stepping = call_that_led_to(run, step.place, late.place) if told else ""
    name = run.optimizer_name_at(key, step.place) or run.optimizer_path(key) or "optimizer"
    return f"{called or f'{loss}.backward()'}\n{stepping or f'{name}.step()'}"


def _begun(run: Run, step: StepFact, late: BackwardFact, loss: str) -> str:
    """What the step comes after: where the loss goes back through others as well, they may have run behind it."""
    leaves = late.witness.leaf_keys if late.witness is not None else frozenset[int]()
    owner = run.owner_path(leaves & step.parameter_keys) if leaves - step.parameter_keys else ""
    return f"`{owner}` was called" if owner else f"`{loss}` was computed"


def _effect(steps: list[StepFact], idle: list[StepFact]) -> str:
    if len(idle) == len(steps):
        return "no step found a gradient, and no weight has changed"
    first = "the first step found no gradient, and each later one" if idle else "each step"
    return f"{first} follows the loss of the round before"
