"""The loss grows from step to step until it is no number any more."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from torch_inspector.facts import LossFact, Run
from torch_inspector.findings import Evidence, Finding, number_text
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds training whose loss grew tenfold before it became inf or nan, or a thousandfold without an end."""
    growth = run.divergence() if run.trace.steps and run.nonfinite_cause() in ("rate", "") else None
    burst = run.burst() if growth is None and run.nonfinite_cause() == "rate" else None
    if run.trace.count("scaler.step"):
        return
    if growth is not None:
        yield _finding(run, *growth)
    elif burst is not None:
        yield _finding(run, burst[0].value, burst[0].value, burst)


def _finding(run: Run, first: float, last: float, burst: tuple[LossFact, LossFact] | None = None) -> Finding:
    step = run.trace.steps[0]
    name = run.optimizer_path(step.optimizer) or step.name or "optimizer"
    optimizer = run.after.optimizer(step.optimizer)
    rate = optimizer.learning_rate if optimizer is not None else None
    keys = frozenset(one.key for one in run.after.failed_weights)
    owner = run.owner_path(keys or step.leaf_keys)
    with_rate = f" with a learning rate of {rate:g}" if rate is not None else ""
    grown = _grew(run, first, last) if burst is None else _burst(*burst)
    return Finding(
        message=(
            f"{grown}: the steps of `{name}`{with_rate} are too long"
            f"{f', and the weights of `{owner}` are not finite any more' if owner and keys else ''}."
        ),
        subject=name,
        fix=_fix(name, rate, step.optimizer_kind),
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


def _grew(run: Run, first: float, last: float) -> str:
    return f"the loss grew from {number_text(first)} to {number_text(last)}{_end(run)}"


def _burst(finite: LossFact, bad: LossFact) -> str:
    return (
        f"the loss was {number_text(finite.value)} at step {finite.index} and {bad.value} at step {bad.index}, "
        f"with weights up to {bad.largest_weight:.2g} by then"
    )


def _end(run: Run) -> str:
    """When it was not finite any more, counted from 1."""
    series = run.bad_series()
    loss = next((one for one in run.trace.losses if not isfinite(one.value)), None)
    if loss is not None:
        return f" and was {loss.value} at step {loss.index}"
    return f" and is {series.bad} at `{series.path}[{series.first_bad}]`" if series is not None else ""


def _fix(name: str, rate: float | None, kind: str) -> str:
    usual = 1e-3 if "Adam" in kind else 1e-2
    lower = (
        f"lr={min(rate / 10, usual):g} or less"
        if rate
        else "a tenth of the rate or less (1e-3 is usual for Adam, 1e-2 for SGD)"
    )
    return f"{name} with {lower}; scale inputs and targets to about 1; clip_grad_norm_ before {name}.step()"
