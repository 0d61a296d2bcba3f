"""Prediction (N, 1) minus target (N,)."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, PatternFact, Place, Run, Shape
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds losses that compare each prediction with each target, because a column met a row."""
    seen: set[Place] = set()
    for backward in run.trace.patterned:
        patterns = backward.witness.patterns if backward.witness else ()
        pattern = next((p for p in patterns if p.name == "stretched-operands"), None)
        if pattern is not None and len(pattern.shapes) > 2 and backward.made_at not in seen:  # noqa: PLR2004
            seen.add(backward.made_at)
            yield _finding(backward, pattern)


def _finding(backward: BackwardFact, pattern: PatternFact) -> Finding:
    result, first, second = pattern.shapes[:3]
    loss = f"`{backward.root}`" if backward.root else "the loss"
    other = pattern.operands[0] if pattern.operands else ""
    n, product = max(result, default=0), "MulBackward0" in pattern.nodes
    how = (
        f"a row met a column where {_named(other)} was computed"
        if second == result
        else f"both are stretched to {result}"
    )
    return Finding(
        message=(
            f"{loss} {'multiplies' if product else 'compares'} {first} with {second}: {how}, "
            f"{n} times more terms than the {n} samples, "
            f"{'of which each is weighted by all others' if product else 'and the best answer becomes a constant'}."
        ),
        subject=backward.root,
        fix=_fix(other, second) if second != result else _fix_of_target(other),
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        evidence=(
            Evidence("one side", str(first)),
            Evidence(f"other side ({other})" if other else "other side", str(second)),
            Evidence("stretched to", str(result)),
            Evidence("graph", " <- ".join(pattern.nodes)),
        ),
    )


def _fix(other: str, shape: Shape) -> str:
    """What to do with the side whose name is known; of the other one it is not."""
    if not other:
        return "# .squeeze(1) on the prediction, or .unsqueeze(1) on the target: both sides need the same shape"
    change = ".unsqueeze(1)" if len(shape) == 1 else ".squeeze(1)"
    opposite = ".squeeze(1)" if len(shape) == 1 else ".unsqueeze(1)"
    if other.replace(".", "").isidentifier():
        return f"{other} = {other}{change}  # or {opposite} on what it meets: both sides need the same shape"
    return f"{other}{change}  # in place of {other}, or {opposite} on what it meets"


def _named(other: str) -> str:
    return f"`{other}`" if other else "the other side"


def _fix_of_target(other: str) -> str:
    return (
        f"# {other} has to be (N, 1) too: .squeeze(1) on what the module gives, or .unsqueeze(1) on what is added to it"
    )
