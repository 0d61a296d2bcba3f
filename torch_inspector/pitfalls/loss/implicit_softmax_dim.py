"""A softmax without `dim`."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, instead
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# The axis that torch picks is the first one of tensors with so many, else the second.
_FIRST = (0, 1, 3)


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds calls of `F.softmax` and layers `nn.Softmax()` that leave the axis to torch."""
    for fact in run.expressions("unnamed-axis"):
        yield _finding(run, fact)


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    shape = fact.shapes[0] if fact.shapes else None
    if shape:
        axis = 0 if len(shape) in _FIRST else 1
        what = f"torch takes dim {axis} of {shape}, of size {shape[axis]}"
    else:
        what = "torch takes dim 0 for tensors with 1 or 3 axes, dim 1 for 2 or 4"
    graver = shape is not None and len(shape) == 3  # noqa: PLR2004
    return Finding(
        message=f"`{fact.text}` names no dim: {what}.",
        subject=fact.target or (fact.names[0] if fact.names else ""),
        fix=instead(run, fact.place, fact.text, _named(fact), "the last axis, or the one that is meant"),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("function", fact.detail), *((Evidence("shape", str(shape)),) if shape else ())),
        severity="warning" if graver else "",
    )


def _named(fact: ExpressionFact) -> str:
    return f"{fact.text[:-1]}{', ' if fact.names else ''}dim=-1)"
