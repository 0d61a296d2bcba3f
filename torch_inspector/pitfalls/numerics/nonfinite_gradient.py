"""The loss is finite and its gradient is not."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import LossFact, OperationFact, Run, kept_from_edge
from torch_inspector.facts.half_floors import in_half
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NAMES_SHOWN = 3
_FIX = "keep the operand away from the edge before the operation: (… + 1e-12).sqrt(), ….clamp_min(1e-12).log()"
_INSIDE = "keep the operand inside of -1 to 1 before the operation: ….clamp(-1 + 1e-6, 1 - 1e-6)"
_FIXES = {
    "log1p": "keep the operand above -1 by what its type of number can tell: ….clamp_min(-0.999).log1p()",
    "**": "keep the base above zero, where the exponent is below 1: ….clamp_min(1e-6).pow(p)",
    "/": "keep the divisor away from zero: total / count.clamp_min(1)",
    "/ norm": "F.normalize(v, dim=-1), which leaves a row of zeros as it is; or v / v.norm(…).clamp_min(1e-8)",
    "eigh": "make the eigenvalues differ: torch.linalg.eigh(A + torch.diag(torch.arange(A.shape[-1]) * 1e-3))",
    "svd": "make the singular values differ: start from a random matrix, or add a little noise to it",
    **dict.fromkeys(("acos", "asin", "atanh"), _INSIDE),
}
"""What usually helps, by operation."""


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the first backward call that left NaN or infinity in a gradient although its loss was finite."""
    loss = run.trace.spoiled_loss
    if loss is not None and run.nonfinite_cause() == "gradient":
        yield _finding(run, loss)


def _finding(run: Run, loss: LossFact) -> Finding:
    backward = next((one for one in run.trace.backwards if one.place == loss.place), None)
    name = (backward.root if backward is not None else "") or "loss"
    paths = [run.parameter_path(one.key) for one in loss.spoiled_gradients]
    shown = ", ".join(f"`{path}.grad`" for path in paths[:_NAMES_SHOWN] if path) or "gradients"
    edges = _edges(run, loss)
    edge = edges[0] if edges else None
    place, fix = kept_from_edge(run, edge) or (loss.place, "")
    return Finding(
        message=(f"`{name}` was {loss.value:.3g}, but `backward()` left nan or inf in {shown}{_because(edges)}."),
        subject=name,
        fix=fix or _general_fix(edge),
        line=place.line,
        cell=place.cell,
        evidence=(
            *(Evidence("operation", one.name) for one in edges),
            Evidence("parameters with such gradients", len(loss.spoiled_gradients), "count"),
            Evidence("gradients looked at", loss.gradient_count, "count"),
            Evidence("nan in the first", loss.spoiled_gradients[0].nan_count, "count"),
            Evidence("call of backward()", loss.index),
            *((Evidence("backward at line", loss.place.line),) if loss.place.line is not None else ()),
        ),
    )


def _general_fix(edge: OperationFact | None) -> str:
    if edge is None:
        return "torch.autograd.set_detect_anomaly(True)  # before the loss, for one run: it names the operation"
    if edge.name == "sqrt" and edge.cause.startswith("negative"):
        return in_half("keep the operand above zero before the operation: ….clamp_min(1e-12).sqrt()", half=edge.half)
    return in_half(_FIXES.get(edge.name, _FIX), half=edge.half)


def _because(edges: list[OperationFact]) -> str:
    if not edges:
        return ""
    which = "they have" if edges[1:] else "it has"
    return f": {', and '.join(one.text() for one in edges)}, where {which} no finite slope"


def _edges(run: Run, loss: LossFact) -> list[OperationFact]:
    """The operations of its graph that have no slope there, the first of each name."""
    calls = [one for one in run.trace.backwards if (one.place, one.index) == (loss.place, loss.index)]
    found = [edge for one in calls if one.witness is not None for edge in one.witness.edges]
    return list({one.name: one for one in reversed(found)}.values())[::-1]
