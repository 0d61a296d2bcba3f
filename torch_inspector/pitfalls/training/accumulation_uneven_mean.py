"""Means over parts of unequal size, added up as if the parts were equal."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from torch_inspector.facts import BackwardFact, ExpressionFact, Run, StepFact
from torch_inspector.facts.own_gradients import changes_gradients
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Parts that differ less are nearly equal.
_NEARLY = 0.9


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds steps after several backward calls of means, whose parts differ or whose loader leaves a smaller batch."""
    for key, steps in run.steps_by_optimizer().items():
        if not any(step.backward_count > 1 for step in run.odd_steps(key)):
            continue
        before = 0
        for step in steps:
            begun, before = before, step.order
            if not _accumulates(run, step):
                continue
            own = run.trace.backwards_at(step.backward_at)
            calls = [one for one in own if begun < one.order < step.order and _is_plain_mean(one, step)]
            found = _of_window(run, step, calls) if calls else None
            if found is not None:
                yield found
                break


def _accumulates(run: Run, step: StepFact) -> bool:
    several = step.backward_count > 1 and not step.has_closure and not step.kept_gradients
    return several and step.backward_at is not None and not changes_gradients(run, step.place.cell)


def _is_plain_mean(call: BackwardFact, step: StepFact) -> bool:
    """True for a mean that nothing but a division scales: a factor may be the size of the part."""
    seen = call.witness
    if seen is None or call.is_grad_call or call.place != step.backward_at or not seen.leaf_keys & step.parameter_keys:
        return False
    return seen.mean_reduced is True and bool(seen.mean_shape) and "MulBackward0" not in seen.top


def _of_window(run: Run, step: StepFact, calls: list[BackwardFact]) -> Finding | None:
    shapes = [call.witness.mean_shape for call in calls if call.witness is not None]
    sizes = [shape[0] for shape in shapes]
    alike = (
        len({(shape[1:], call.witness and call.witness.top) for shape, call in zip(shapes, calls, strict=True)}) == 1
    )
    if alike and 0 < min(sizes) < max(sizes) * _NEARLY:
        return _finding(step, calls[0], min(sizes), max(sizes), "the parts that were looked at")
    loop = next((one for one in run.expressions("remainder") if _is_around(one, calls[0], step)), None)
    if loop is None:
        return None
    _, size, last = loop.shapes[0][:3]
    if not 0 < last < size:
        return None
    return _finding(step, calls[0], last, size, f"the batches of `{loop.names[0]}`")


def _is_around(loop: ExpressionFact, call: BackwardFact, step: StepFact) -> bool:
    """True for the loop over a loader whose last, smaller batch shares its step with others."""
    if loop.detail == "empty" or not loop.names or not loop.shapes or len(loop.shapes[0]) < 3:  # noqa: PLR2004
        return False
    here, there = loop.place, call.place
    if here.scope != there.scope or (here.line or 0) >= (there.line or 0):
        return False
    count, size = loop.shapes[0][:2]
    batches = ceil(count / size) if size > 0 else 0
    return batches >= step.backward_count > 1 and batches % step.backward_count != 1


def _finding(step: StepFact, call: BackwardFact, small: int, large: int, what: str) -> Finding:
    name = call.root or "loss"
    return Finding(
        message=(
            f"`{name}` is a mean over each part, and {what} have {small} to {large} rows: in the sum of "
            f"{step.backward_count} backward calls a row of the smallest counts {large / small:.1f} times as much."
        ),
        subject=name,
        fix=f"({name} * len(part) / total).backward()  # total: rows of all parts of one step",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("smallest part", small, "count"),
            Evidence("largest part", large, "count"),
            Evidence("backward calls per step", step.backward_count, "count"),
        ),
    )
