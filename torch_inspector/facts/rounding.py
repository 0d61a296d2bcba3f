"""Steps that weights of 16 bits round away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import StepFact
    from torch_inspector.facts.run import Run

# Steps after which it is no beginning any more.
_MANY = 10
# How far apart the numbers from 1 to 2 are.
_APART = {"bfloat16": 2**-7, "float16": 2**-10}


def is_sure(run: Run, key: int, steps: list[StepFact]) -> bool:
    """True if none of the steps looked at has moved a number, in many steps of one rate."""
    several = run.trace.count("step", steps[0].place) >= _MANY
    return (
        several and all(one.coarse_type for one in steps) and not any(s.optimizer == key for s in run.trace.schedules)
    )


def words(run: Run, key: int, rate: float) -> tuple[str, str]:
    """Why, and what helps."""
    step = next(one for one in run.trace.steps if one.optimizer == key)
    kind, owner = step.coarse_type or "bfloat16", run.owner_path(step.parameter_keys) or "model"
    apart = f"{kind} (they are {_APART[kind]:.2g} apart from 1 on)"
    reason = f"gradients arrive, but at a learning rate of {rate:g} each change is less than half the way to the next"
    return (
        f"{reason} number of {apart}, so the weights round back to what they were",
        f"{owner}.float()  # weights in float32; to compute in {kind}: with torch.autocast('cpu', torch.{kind}):",
    )
