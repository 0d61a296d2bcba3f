"""A softmax without `dim`."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, instead
from torch_inspector.facts.implied_axes import implied_axis
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint", yields_to=("softmax-over-batch",))
def check(run: Run) -> Iterator[Finding]:
    """Finds calls of `F.softmax` and layers `nn.Softmax()` that leave the axis to torch."""
    for fact in run.expressions("unnamed-axis"):
        yield _finding(run, fact)


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    shape = fact.shapes[0] if fact.shapes else None
    if shape:
        axis = implied_axis(len(shape))
        what = f"torch takes dim {axis} of {shape}, of size {shape[axis]}"
    else:
        what = "torch takes dim 0 for tensors with 1 or 3 axes, dim 1 for 2 or 4"
    # The last axis of scores of steps (batch, steps, 1) has one number, of which a softmax is 1.
    steps = shape is not None and len(shape) == 3 and shape[-1] == 1 < shape[1]  # noqa: PLR2004
    wanted = 1 if steps else -1
    remark = "along the steps: the last axis is 1 long" if steps else "the last axis, or the one that is meant"
    graver = shape is not None and len(shape) == 3  # noqa: PLR2004
    return Finding(
        message=f"`{fact.text}` names no dim: {what}.",
        subject=fact.target or (fact.names[0] if fact.names else ""),
        fix=instead(run, fact.place, fact.text, _named(fact, axis=wanted), remark),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("function", fact.detail), *((Evidence("shape", str(shape)),) if shape else ())),
        severity="warning" if graver else "",
    )


def _named(fact: ExpressionFact, *, axis: int) -> str:
    return f"{fact.text[:-1]}{', ' if fact.names else ''}dim={axis})"
