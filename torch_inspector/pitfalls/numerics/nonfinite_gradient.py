"""The loss is finite and its gradient is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import LossFact, OperationFact, Place, Run, kept_from_edge
from torch_inspector.facts.steep import steep_roots, with_more
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Operations whose slope is infinite, or undefined, at the edge of what they take.
_STEEP = re.compile(
    r"\b(sqrt|rsqrt|log|log2|log10|norm|acos|asin|arccos|arcsin|atan2|cdist|std)\(|\bpow\([^()]*(0?\.\d|-\d)|\*\*\s*\(?(0?\.\d|-)"
)
_NAMES_SHOWN = 3
_FIX = "keep the operand away from the edge before the operation: (… + 1e-12).sqrt(), ….clamp_min(1e-12).log()"
_INSIDE = "keep the operand inside of -1 to 1 before the operation: ….clamp(-1 + 1e-6, 1 - 1e-6)"
_FIXES = {
    "log1p": "keep the operand above -1 by what its type of number can tell: ….clamp_min(-0.999).log1p()",
    "**": "keep the base above zero, where the exponent is below 1: ….clamp_min(1e-6) ** p",
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
    steep, edge = _steep_lines(run, loss), _edge(run, loss)
    line, text = steep[0] if len(steep) == 1 else (loss.place.line, "")
    roots = steep_roots(run) if edge is None else []
    roots = roots if len({one.place for one in roots}) == 1 else []
    place, fix = kept_from_edge(run, edge) or (Place(loss.place.cell, line), "")
    if roots and not steep:
        place, text = roots[0].place, roots[0].text
    fix = fix or (with_more(run, roots) if roots and roots[0].place.line == place.line else "")
    return Finding(
        message=(
            f"`{name}` was {loss.value:.3g}, but `backward()` left nan or inf in {shown}"
            f"{f': {edge.text()}, where it has no finite slope' if edge is not None else _at_limit(text)}."
        ),
        subject=name,
        fix=fix or _general_fix(edge),
        line=place.line,
        cell=place.cell,
        evidence=(
            *((Evidence("operation", edge.name),) if edge is not None else ()),
            Evidence("parameters with such gradients", len(loss.spoiled_gradients), "count"),
            Evidence("gradients looked at", loss.gradient_count, "count"),
            Evidence("nan in the first", loss.spoiled_gradients[0].nan_count, "count"),
            Evidence("call of backward()", loss.index),
            *((Evidence("backward at line", loss.place.line),) if loss.place.line is not None else ()),
        ),
    )


def _general_fix(edge: OperationFact | None) -> str:
    if edge is not None and edge.name == "sqrt" and edge.cause.startswith("negative"):
        return "keep the operand above zero before the operation: ….clamp_min(1e-12).sqrt()"
    return _FIXES.get(edge.name if edge is not None else "", _FIX)


def _at_limit(text: str) -> str:
    return f": the slope in `{text}` is infinite at its limit" if text else ""


def _edge(run: Run, loss: LossFact) -> OperationFact | None:
    """The operation of its graph that has no slope there, if it is the only one."""
    calls = [one for one in run.trace.backwards if (one.place, one.index) == (loss.place, loss.index)]
    found = [edge for one in calls if one.witness is not None for edge in one.witness.edges]
    return found[0] if len({edge.name for edge in found}) == 1 else None


def _steep_lines(run: Run, loss: LossFact) -> list[tuple[int, str]]:
    """Lines of the cell that calls `backward` which hold such an operation."""
    lines = enumerate(run.source_of(loss.place.cell).splitlines(), 1)
    return [(number, line.split("#")[0].strip()) for number, line in lines if _STEEP.search(line.split("#")[0])]
