"""The loss grows from step to step until it is no number any more."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds training whose loss grew tenfold before it became inf or nan, or a thousandfold without an end."""
    growth = run.divergence() if run.trace.steps and run.nonfinite_cause() in ("rate", "") else None
    if growth is not None and not run.trace.count("scaler.step"):
        yield _finding(run, *growth)


def _finding(run: Run, first: float, last: float) -> Finding:
    step = run.trace.steps[0]
    name = run.optimizer_path(step.optimizer) or step.name or "optimizer"
    optimizer = run.after.optimizer(step.optimizer)
    rate = optimizer.learning_rate if optimizer is not None else None
    keys = frozenset(one.key for one in run.after.spoiled_weights)
    owner = run.owner_path(keys or step.leaf_keys)
    with_rate = f" with a learning rate of {rate:g}" if rate is not None else ""
    return Finding(
        message=(
            f"the loss grew from {first:.3g} to {last:.3g}{_end(run)}: the steps of `{name}`{with_rate} are too long"
            f"{f', and the weights of `{owner}` are not finite any more' if owner and keys else ''}."
        ),
        subject=name,
        fix=_fix(name, rate),
        line=step.place.line,
        cell=step.place.cell,
        severity="error" if run.nonfinite_cause() else "warning",
        evidence=(
            Evidence("loss at the first step", first),
            Evidence("last finite loss", last),
            *((Evidence("learning rate", rate),) if rate is not None else ()),
            Evidence("steps in this cell", run.trace.count("step"), "count"),
            Evidence("parameters that are not finite", len(keys), "count"),
        ),
    )


def _end(run: Run) -> str:
    """When it was not finite any more, counted from 1."""
    series = run.bad_series()
    loss = next((one for one in run.trace.losses if not isfinite(one.value)), None)
    if loss is not None:
        return f" and was {loss.value} at step {loss.index}"
    return f" and is {series.bad} at `{series.path}[{series.first_bad}]`" if series is not None else ""


def _fix(name: str, rate: float | None) -> str:
    lower = f"lr={rate / 10:g}" if rate else "a tenth of the rate"
    return f"{name} with {lower}; scale inputs and targets to about 1; clip_grad_norm_ before {name}.step()"
